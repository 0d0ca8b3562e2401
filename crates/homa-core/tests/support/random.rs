//! Numbers that look random and repeat (SplitMix64).

/// A source of numbers; the same seed gives the same ones.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..below`.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.next() % below.max(1)
    }

    /// True in `permille` of 1000 cases.
    pub(crate) fn chance(&mut self, permille: u32) -> bool {
        self.below(1000) < u64::from(permille)
    }

    /// A message length: as many of each magnitude, and often an edge.
    pub(crate) fn length(&mut self, most: u32) -> u32 {
        const EDGES: [u32; 12] = [
            1, 2, 100, 1423, 1424, 1425, 2848, 24_999, 25_000, 25_001, 40_000, 1_000_000,
        ];
        let length = if self.chance(400) {
            EDGES[self.below(EDGES.len() as u64) as usize]
        } else {
            let bits = 1 + self.below(20);
            1 + self.below(1 << bits) as u32
        };
        length.clamp(1, most)
    }
}
