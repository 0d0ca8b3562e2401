//! The in-process network alone.

use super::*;

fn address(host: u8) -> SocketAddr {
    ([10, 0, 0, host], 4000).into()
}

fn is_readable(mem: &Mem) -> bool {
    let mut polled = libc::pollfd {
        fd: mem.inbox.ready.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, which is what the count says.
    unsafe { libc::poll(&raw mut polled, 1, 0) == 1 }
}

#[test]
fn receive__in_order_with_path_and_tos() {
    let network = MemNetwork::new();
    let (a, b) = (
        network.endpoint(address(1)).unwrap(),
        network.endpoint(address(2)).unwrap(),
    );
    let mut batch = SendBatch::default();
    for index in 0..40_u8 {
        batch
            .push(&Path::to(address(2)), index, 100)
            .unwrap()
            .fill(index);
    }
    assert!(!is_readable(&b));
    assert_eq!(a.send(&mut batch).sent, 40);
    assert!(is_readable(&b));
    let mut received = ReceiveBatch::default();
    let mut seen = 0;
    while b.receive(&mut received).unwrap() > 0 {
        for (bytes, meta) in received.iter() {
            assert_eq!((bytes, meta.tos), (&[seen; 100][..], seen));
            assert_eq!(meta.path.remote, address(1));
            assert_eq!(meta.path.local, Some(address(2).ip()));
            seen += 1;
        }
    }
    assert_eq!(seen, 40);
    assert!(!is_readable(&b));
}

#[test]
fn send__to_oneself_and_around_the_ring() {
    let network = MemNetwork::with_options(MemOptions {
        queue_bytes: 1000,
        ..MemOptions::default()
    });
    let mem = network.endpoint(address(1)).unwrap();
    let (mut batch, mut received) = (SendBatch::default(), ReceiveBatch::default());
    for round in 0..20_u8 {
        batch
            .push(&Path::to(address(1)), 0, 333)
            .unwrap()
            .copy_from_slice(&std::array::from_fn::<_, 333, _>(|index| {
                round.wrapping_add(index as u8)
            }));
        mem.send(&mut batch);
        assert_eq!(mem.receive(&mut received).unwrap(), 1);
        let (bytes, _) = received.iter().next().unwrap();
        assert!(
            bytes
                .iter()
                .zip(0_usize..)
                .all(|(byte, index)| *byte == round.wrapping_add(index as u8))
        );
    }
}

#[test]
fn send__full_queue_is_counted_by_the_receiver() {
    let network = MemNetwork::with_options(MemOptions {
        queue_packets: 3,
        ..MemOptions::default()
    });
    let (a, b) = (
        network.endpoint(address(1)).unwrap(),
        network.endpoint(address(2)).unwrap(),
    );
    let mut batch = SendBatch::default();
    for _ in 0..5 {
        batch.push(&Path::to(address(2)), 0, 10).unwrap().fill(0);
    }
    a.send(&mut batch);
    let mut received = ReceiveBatch::default();
    assert_eq!(b.receive(&mut received).unwrap(), 3);
    assert_eq!(b.counters().rx_kernel_drops, 2);
}

#[test]
fn errors__nobody_there_and_too_big() {
    let network = MemNetwork::new();
    let a = network.endpoint(address(1)).unwrap();
    drop(network.endpoint(address(2)).unwrap());
    assert!(network.endpoint(address(1)).is_err());
    let mut batch = SendBatch::default();
    batch.push(&Path::to(address(2)), 0, 28).unwrap().fill(9);
    batch.push(&Path::to(address(1)), 0, 1473).unwrap().fill(9);
    assert_eq!(a.send(&mut batch).dropped, 2);
    assert!(is_readable(&a));
    let mut kinds = Vec::new();
    a.errors(&mut |error| {
        assert!(error.quoted.len() >= 28 && error.quoted[0] == 9);
        kinds.push(error.kind);
    });
    kinds.reverse();
    let max_packet = 1472;
    assert_eq!(
        kinds,
        [
            NetworkErrorKind::PortClosed,
            NetworkErrorKind::PacketTooBig { max_packet }
        ]
    );
    assert!(!is_readable(&a));
}
