//! One direction of a tap: what happens to each packet that passes.

use std::time::Instant;

use super::Tap;
use super::faults::{Dice, Fate, Hold};
use super::held::Held;
use super::pcapng::Direction;
use crate::Meta;
use crate::counters::{Cell, CounterCells};
use crate::socket::lock;

/// What both directions have.
pub(super) struct Side {
    pub(super) direction: Direction,
    pub(super) dice: Dice,
    pub(super) held: Held,
    /// A packet whose bits are flipped.
    pub(super) scratch: Vec<u8>,
}

/// Whether there was room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Taken,
    NoRoom,
}

/// The counters of one direction's faults.
struct FaultCells<'a> {
    lost: &'a Cell,
    duplicated: &'a Cell,
    reordered: &'a Cell,
    delayed: &'a Cell,
    corrupted: &'a Cell,
}

impl<'a> FaultCells<'a> {
    fn of(cells: &'a CounterCells, direction: Direction) -> Self {
        match direction {
            Direction::Outbound => Self {
                lost: &cells.tap_tx_lost,
                duplicated: &cells.tap_tx_duplicated,
                reordered: &cells.tap_tx_reordered,
                delayed: &cells.tap_tx_delayed,
                corrupted: &cells.tap_tx_corrupted,
            },
            Direction::Inbound => Self {
                lost: &cells.tap_rx_lost,
                duplicated: &cells.tap_rx_duplicated,
                reordered: &cells.tap_rx_reordered,
                delayed: &cells.tap_rx_delayed,
                corrupted: &cells.tap_rx_corrupted,
            },
        }
    }
}

impl<D> Tap<D> {
    fn record(&self, direction: Direction, meta: &Meta, bytes: &[u8], comment: Option<&str>) {
        if let Some(recorder) = &mut *lock(&self.recorder) {
            recorder.record(direction, meta, bytes, comment, &self.counters);
        }
    }

    /// Decides a packet's fate and hands what is left of it to `deliver`,
    /// which says whether it took it; there is room for one.
    pub(super) fn pass(
        &self,
        side: &mut Side,
        meta: &Meta,
        bytes: &[u8],
        now: Instant,
        deliver: &mut dyn FnMut(&Meta, &[u8]) -> Delivery,
    ) {
        let fate = side.dice.throw();
        let cells = FaultCells::of(&self.counters, side.direction);
        if fate.lost {
            cells.lost.increment();
            self.record(side.direction, meta, bytes, Some("tap: lost"));
            return;
        }
        side.scratch.clear();
        side.scratch.extend_from_slice(bytes);
        if fate.corrupted {
            cells.corrupted.increment();
            fate.corrupt(&mut side.scratch, side.dice.faults().corrupt_bits);
        }
        if self.hold(side, meta, &fate, now) {
            return;
        }
        let comment = fate.corrupted.then_some("tap: corrupted");
        self.record(side.direction, meta, &side.scratch, comment);
        deliver(meta, &side.scratch);
        if fate.duplicated {
            match deliver(meta, &side.scratch) {
                Delivery::Taken => {
                    cells.duplicated.increment();
                    self.record(side.direction, meta, &side.scratch, Some("tap: duplicate"));
                }
                Delivery::NoRoom => self.counters.tap_overflow.increment(),
            }
        }
        side.held.overtake();
    }

    /// Holds the scratch packet back if that is its fate and there is room.
    fn hold(&self, side: &mut Side, meta: &Meta, fate: &Fate, now: Instant) -> bool {
        let faults = side.dice.faults();
        let cells = FaultCells::of(&self.counters, side.direction);
        let (due, overtakers, cell) = match fate.hold {
            Hold::No => return false,
            Hold::For(delay) => (now + delay, None, cells.delayed),
            Hold::UntilOvertaken => (
                now + faults.reorder_hold,
                Some(faults.reorder_packets),
                cells.reordered,
            ),
        };
        if side.held.is_full() {
            self.counters.tap_overflow.increment();
            return false;
        }
        cell.increment();
        side.held.hold(meta, &side.scratch, due, overtakers);
        if fate.duplicated {
            if side.held.is_full() {
                self.counters.tap_overflow.increment();
            } else {
                cells.duplicated.increment();
                side.held.hold(meta, &side.scratch, due, overtakers);
            }
        }
        true
    }

    /// Lets held packets go whose time has come, as long as there is room.
    pub(super) fn release(
        &self,
        side: &mut Side,
        now: Instant,
        deliver: &mut dyn FnMut(&Meta, &[u8]) -> Delivery,
    ) {
        while let Some(index) = side.held.ready(now) {
            let packet = side.held.get(index);
            if deliver(&packet.meta, &packet.bytes) == Delivery::NoRoom {
                return;
            }
            let comment = Some("tap: held back");
            self.record(side.direction, &packet.meta, &packet.bytes, comment);
            side.held.remove(index);
        }
    }
}
