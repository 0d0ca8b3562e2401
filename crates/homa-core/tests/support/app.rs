//! What the application of a host does with requests.

/// How a server's application treats requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Service {
    /// Longest time from request to response.
    pub(crate) time_ns: u64,
    /// Longest time until the application takes a complete message.
    pub(crate) take_ns: u64,
    /// Of 1000 requests, those that are refused instead of answered.
    pub(crate) refuse_permille: u32,
}
