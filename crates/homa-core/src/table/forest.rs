//! Many priority queues over slots that share one array of nodes: the waiting
//! messages of each peer, smallest key first.
//!
//! Owns keys and nodes ([`Forest`]); each [`Tree`] is a root that lives with
//! its owner and must always be passed together with the same `Forest`.
//! Pairing heaps: a queue costs four bytes while empty, and insertion into one
//! of thousands of queues is O(1). Removal and raising a key are amortised
//! O(log n); one call may be linear in the children of a node.
//!
//! Invariants: a slot is in at most one tree of a forest; no key is smaller
//! than its parent's; `back` of a node is its left sibling, or its parent if
//! it is the first child, or itself if it is a root, or absent if the slot is
//! in no tree. No recursion: depth can reach n. The order among equal keys is
//! unspecified but the same in every run.

use super::{Link, link_to, slot_of};
use alloc::vec::Vec;

/// The root of a queue of slots; empty by default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tree {
    root: Link,
}

#[derive(Clone, Copy, Default)]
struct Node<K> {
    key: K,
    child: Link,
    /// Right sibling.
    next: Link,
    back: Link,
}

/// The nodes of all trees over the slots below a fixed capacity.
pub(crate) struct Forest<K> {
    /// As long as the largest slot ever set plus one, at most `capacity`.
    nodes: Vec<Node<K>>,
    capacity: u32,
}

impl<K: Ord + Copy + Default> Forest<K> {
    /// Nodes for the slots `0..capacity`, none of them in a tree.
    pub(crate) fn with_capacity(capacity: u32) -> Self {
        Self {
            nodes: Vec::with_capacity(capacity as usize),
            capacity,
        }
    }

    /// Puts `slot` into `tree` under `key`, or gives it a new key there. A
    /// slot that is in another tree, or out of range, is a bug of the caller;
    /// out of range is ignored.
    pub(crate) fn set(&mut self, tree: &mut Tree, slot: u32, key: K) {
        if slot >= self.capacity {
            debug_assert!(false, "slot {slot} out of range");
            return;
        }
        let at = slot as usize;
        if at >= self.nodes.len() {
            // Within the capacity taken at construction.
            self.nodes.resize(at + 1, Node::default());
        }
        let Some(node) = self.nodes.get_mut(at) else {
            return;
        };
        let this = link_to(slot);
        if node.back.is_some() {
            let keeps_place = if key < node.key {
                tree.root == this
            } else {
                node.child.is_none() || key == node.key
            };
            if keeps_place {
                node.key = key;
                return;
            }
            if key < node.key {
                node.key = key;
                self.cut(slot);
                tree.root = self.meld(tree.root, this);
                return;
            }
            if !self.remove(tree, slot) {
                return;
            }
        }
        if let Some(node) = self.nodes.get_mut(at) {
            *node = Node {
                key,
                back: this,
                ..Node::default()
            };
        }
        tree.root = self.meld(tree.root, this);
    }

    /// Takes `slot` out of `tree`, which must be the one it is in; false if it
    /// is in none.
    pub(crate) fn remove(&mut self, tree: &mut Tree, slot: u32) -> bool {
        let this = link_to(slot);
        let Some(&Node { child, back, .. }) = self.nodes.get(slot as usize) else {
            return false;
        };
        let is_root = back == this;
        if back.is_none() || is_root != (tree.root == this) {
            debug_assert!(back.is_none(), "slot {slot} is in another tree");
            return false;
        }
        if is_root {
            tree.root = self.combine(child);
        } else {
            self.cut(slot);
            let orphans = self.combine(child);
            tree.root = self.meld(tree.root, orphans);
        }
        if let Some(node) = self.nodes.get_mut(slot as usize) {
            *node = Node::default();
        }
        true
    }

    /// The slot with the smallest key.
    pub(crate) fn peek(&self, tree: &Tree) -> Option<(u32, K)> {
        let slot = slot_of(tree.root)?;
        self.nodes.get(slot as usize).map(|node| (slot, node.key))
    }

    /// Whether `slot` is in some tree of this forest.
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.nodes
            .get(slot as usize)
            .is_some_and(|node| node.back.is_some())
    }

    fn node(&mut self, link: Link) -> Option<&mut Node<K>> {
        self.nodes.get_mut(slot_of(link)? as usize)
    }

    /// Makes a tree of its own of a node that is not a root.
    fn cut(&mut self, slot: u32) {
        let this = link_to(slot);
        let Some(node) = self.node(this) else {
            return;
        };
        let (back, next) = (node.back, node.next);
        node.back = this;
        node.next = None;
        if let Some(before) = self.node(back) {
            if before.child == this {
                before.child = next;
            } else {
                before.next = next;
            }
        }
        if let Some(after) = self.node(next) {
            after.back = back;
        }
    }

    /// Joins two trees (either may be absent): the root with the larger key
    /// becomes the first child of the other.
    fn meld(&mut self, a: Link, b: Link) -> Link {
        let (Some(a_slot), Some(b_slot)) = (slot_of(a), slot_of(b)) else {
            return a.or(b);
        };
        let key = |slot: u32| self.nodes.get(slot as usize).map(|node| node.key);
        let (upper, lower) = if key(b_slot) < key(a_slot) {
            (b, a)
        } else {
            (a, b)
        };
        let Some(parent) = self.node(upper) else {
            return upper;
        };
        let first = parent.child;
        parent.child = lower;
        if let Some(child) = self.node(lower) {
            child.next = first;
            child.back = upper;
        }
        if let Some(second) = self.node(first) {
            second.back = lower;
        }
        upper
    }

    /// Joins a row of siblings into one tree: neighbours in pairs first, then
    /// the pairs from the right. (Joining them one after the other would make
    /// removal linear again and again.)
    fn combine(&mut self, mut row: Link) -> Link {
        let mut pairs: Link = None;
        while let Some((a, rest)) = self.detach(row) {
            let (pair, rest) = match self.detach(rest) {
                Some((b, rest)) => (self.meld(a, b), rest),
                None => (a, None),
            };
            if let Some(root) = self.node(pair) {
                root.next = pairs;
            }
            pairs = pair;
            row = rest;
        }
        let mut all: Link = None;
        while let Some((pair, rest)) = self.detach(pairs) {
            all = self.meld(all, pair);
            pairs = rest;
        }
        all
    }

    /// Takes the first of a row of siblings as a root, and the rest.
    fn detach(&mut self, row: Link) -> Option<(Link, Link)> {
        let node = self.node(row)?;
        let rest = node.next.take();
        node.back = row;
        Some((row, rest))
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
#[allow(clippy::unwrap_used, reason = "tests must be able to fail")]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;

    use std::collections::BTreeMap;

    const TREES: usize = 3;
    const SLOTS: u32 = 30;

    #[derive(Clone, Debug)]
    enum Op {
        /// Into this tree, unless the slot is in another: then there.
        Set(usize, u32, u8),
        Remove(u32),
        /// The smallest of a tree.
        Pop(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0..TREES, 0..SLOTS, any::<u8>()).prop_map(|(tree, slot, key)| Op::Set(tree, slot, key)),
            1 => (0..SLOTS + 2).prop_map(Op::Remove),
            1 => (0..TREES).prop_map(Op::Pop),
        ]
    }

    /// The keys of a tree, after checking every link and the order of keys.
    fn walk(forest: &Forest<u8>, tree: &Tree) -> BTreeMap<u32, u8> {
        let mut found = BTreeMap::new();
        let mut todo: Vec<u32> = Vec::new();
        if let Some(root) = slot_of(tree.root) {
            let node = forest.nodes[root as usize];
            assert!(node.back == tree.root && node.next.is_none());
            todo.push(root);
        }
        while let Some(slot) = todo.pop() {
            let node = forest.nodes[slot as usize];
            assert_eq!(found.insert(slot, node.key), None);
            let (mut back, mut row) = (link_to(slot), node.child);
            while let Some(child) = slot_of(row) {
                let below = forest.nodes[child as usize];
                assert!(below.key >= node.key);
                assert_eq!(below.back, back);
                todo.push(child);
                (back, row) = (row, below.next);
            }
        }
        found
    }

    proptest! {
        #[test]
        fn forest__agrees_with_maps(ops in prop::collection::vec(op(), 0..300)) {
            let mut forest = Forest::with_capacity(SLOTS);
            let storage = forest.nodes.capacity();
            let mut trees = [Tree::default(); TREES];
            let mut model: [BTreeMap<u32, u8>; TREES] = Default::default();
            for op in ops {
                let owner = |slot: u32, model: &[BTreeMap<u32, u8>; TREES]| {
                    model.iter().position(|tree| tree.contains_key(&slot))
                };
                match op {
                    Op::Set(tree, slot, key) => {
                        let tree = owner(slot, &model).unwrap_or(tree);
                        forest.set(&mut trees[tree], slot, key);
                        model[tree].insert(slot, key);
                    }
                    Op::Remove(slot) => {
                        let tree = owner(slot, &model);
                        let removed = forest.remove(&mut trees[tree.unwrap_or(0)], slot);
                        prop_assert_eq!(removed, tree.is_some());
                        if let Some(tree) = tree {
                            model[tree].remove(&slot);
                        }
                    }
                    Op::Pop(tree) => if let Some((slot, key)) = forest.peek(&trees[tree]) {
                        prop_assert!(forest.remove(&mut trees[tree], slot));
                        prop_assert_eq!(model[tree].remove(&slot), Some(key));
                    },
                }
                for (tree, model) in trees.iter().zip(&model) {
                    prop_assert_eq!(&walk(&forest, tree), model);
                    let smallest = forest.peek(tree).map(|(_, key)| key);
                    prop_assert_eq!(smallest, model.values().min().copied());
                }
                for slot in 0..SLOTS + 2 {
                    prop_assert_eq!(forest.contains(slot), owner(slot, &model).is_some());
                }
            }
            prop_assert_eq!(forest.nodes.capacity(), storage);
        }
    }

    #[test]
    fn remove__of_the_root_of_a_large_tree_needs_little_stack() {
        const MANY: u32 = 200_000;
        let drain = |keys: &mut dyn Iterator<Item = u32>| {
            let mut forest = Forest::with_capacity(MANY);
            let mut tree = Tree::default();
            for (slot, key) in (0..).zip(keys) {
                forest.set(&mut tree, slot, key);
            }
            for expected in 0..MANY {
                let (slot, key) = forest.peek(&tree).unwrap();
                assert_eq!(key, expected);
                assert!(forest.remove(&mut tree, slot));
            }
            assert!(forest.peek(&tree).is_none());
        };
        // One long row of children, and one long line of descendants.
        drain(&mut (0..MANY));
        drain(&mut (0..MANY).rev());
    }
}
