//! What the engine counts beside the core and the datapath: one list, from
//! which every view is made.

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// What an engine has done since it started.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: u64,)*
        }

        impl Counters {
            /// Every counter with its name, in a fixed order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Turns of the engine.
    turns,
    /// Turns in which nothing arrived.
    empty_turns,
    /// Packets shorter than the common header.
    packets_short,
    /// Packets cut off within their type's header.
    packets_short_for_type,
    /// Packets of a type that is not known.
    packets_of_unknown_type,
    /// Raw packets whose checksum is wrong.
    packets_corrupt,
    /// Packets that answer nothing of ours, from senders that are not known.
    packets_from_strangers,
    /// Packets dropped because no peer could be added.
    packets_without_peer,
    /// Requests to closed ports whose senders were told below Homa.
    packets_refused,
    /// Packets that could not be made, which must not happen.
    packets_not_made,
    /// Errors that the network reported.
    network_errors,
    /// Of these, errors that named no RPC of ours.
    network_errors_ignored,
    /// Messages ended because the memory for pages was used up.
    messages_without_memory,
    /// Calls and one-way messages taken from applications.
    calls_started,
    /// Calls whose deadline passed.
    deadlines_exceeded,
    /// Calls given up by their callers.
    calls_cancelled,
    /// Calls and one-way messages not taken because too many are under way.
    calls_not_taken,
    /// Requests handed to applications.
    requests_taken,
    /// Requests refused because too many wait to be taken.
    requests_refused,
    /// Requests refused because the endpoint shuts down.
    requests_shut_out,
    /// Requests that their application dropped without an answer.
    requests_dropped,
    /// Responses for clients that were gone.
    responses_unwanted,
    /// Times a batch could not be sent at once.
    sends_blocked,
    /// Wake-ups of waiting tasks and threads.
    wakeups,
    /// Wake-ups of a sleeping driver because something is due earlier.
    interrupts,
    /// Times a waiting thread became the driver.
    leads,
    /// Times one waiting thread handed driving to the next.
    successions,
    /// Times the engine's own thread took over from waiting threads, or did
    /// what the driver outside had left for too long.
    takeovers,
    /// Timers that fired late by more than 1 ms.
    late_timers,
}

/// How much there is right now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gauges {
    /// Calls and one-way messages under way, and rooms reserved for more.
    pub calls: u32,
    /// Bytes of these.
    pub outgoing_bytes: u64,
    /// Bytes of responses not yet acknowledged.
    pub response_bytes: u64,
    /// Bytes allocated for incoming messages.
    pub page_bytes: u64,
    /// Complete requests that no listener has taken.
    pub waiting_requests: u32,
    /// Lateness of the engine's timers, in nanoseconds.
    pub timer_lateness_ns: u64,
}

/// Everything that can be counted, at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// The engine's counters.
    pub engine: Counters,
    /// The engine's gauges.
    pub engine_gauges: Gauges,
    /// The protocol's counters.
    pub core: homa_core::Counters,
    /// The protocol's gauges.
    pub core_gauges: homa_core::Gauges,
    /// The datapath's counters.
    pub datapath: homa_datapath::Counters,
}
