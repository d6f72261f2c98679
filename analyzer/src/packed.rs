//! Lists of figures that exist once for each thread. There may be a hundred thousand of them, and most of their numbers are small, so
//! each takes only the bytes that its numbers need.

use std::marker::PhantomData;

use serde::{Serialize, Serializer};

use crate::clock::Ns;

/// The most numbers of an item.
const MOST: usize = 7;
/// How many come first, and are never left out: what follows is mostly 0.
const FIRST: usize = 3;

/// What can be kept in a [`Packed`] list: an item that consists of a few numbers.
pub trait Pack: Copy {
    /// How many, at least three.
    const COUNT: usize;
    /// Returns the numbers; those behind the count are 0. The first is less than 2⁶³.
    fn numbers(&self) -> [u64; MOST];
    /// Makes the item of its numbers.
    fn of_numbers(numbers: [u64; MOST]) -> Self;
}

/// A list in few bytes, which is read from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed<T> {
    bytes: Box<[u8]>,
    len: usize,
    of: PhantomData<T>,
}

/// The items of a list, in order.
#[derive(Clone, Debug)]
pub struct Items<'p, T> {
    bytes: &'p [u8],
    left: usize,
    of: PhantomData<T>,
}

impl<T: Pack> Packed<T> {
    /// Returns the number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the items, in order.
    #[must_use]
    pub fn iter(&self) -> Items<'_, T> {
        Items { bytes: &self.bytes, left: self.len, of: PhantomData }
    }

    /// Changes each item.
    pub(crate) fn change(&mut self, change: impl Fn(&mut T)) {
        *self = self
            .iter()
            .map(|mut item| {
                change(&mut item);
                item
            })
            .collect();
    }

    /// Removes all items.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl<T> Default for Packed<T> {
    fn default() -> Self {
        Self { bytes: Box::default(), len: 0, of: PhantomData }
    }
}

impl<T: Pack> FromIterator<T> for Packed<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let items = items.into_iter();
        // Mostly of two bytes at most.
        let mut bytes = Vec::with_capacity(items.size_hint().0 * T::COUNT * 2);
        let mut len = 0;
        for item in items {
            len += 1;
            let [which, numbers @ ..] = item.numbers();
            // The lowest bit says whether more than the first ones follow.
            let is_long = numbers[FIRST - 1..].iter().any(|&number| number != 0);
            let count = if is_long { T::COUNT } else { FIRST };
            push(&mut bytes, which << 1 | u64::from(is_long));
            numbers[..count - 1].iter().for_each(|&number| push(&mut bytes, number));
        }
        // A vector that is cut to its length would leave holes between the many lists.
        Self { bytes: Box::from(bytes.as_slice()), len, of: PhantomData }
    }
}

/// Adds a number: seven bits in each byte, the lowest first; the highest bit says that there are more.
fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number from the front.
fn take(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    number
}

impl<T: Pack> Iterator for Items<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        let mut numbers = [0; MOST];
        let which = take(&mut self.bytes);
        numbers[0] = which >> 1;
        let count = if which & 1 != 0 { T::COUNT } else { FIRST };
        numbers[1..count].iter_mut().for_each(|number| *number = take(&mut self.bytes));
        Some(T::of_numbers(numbers))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: Pack> ExactSizeIterator for Items<'_, T> {}

impl<'p, T: Pack> IntoIterator for &'p Packed<T> {
    type Item = T;
    type IntoIter = Items<'p, T>;

    fn into_iter(self) -> Items<'p, T> {
        self.iter()
    }
}

impl<T: Pack + Serialize> Serialize for Packed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

/// What a thread spent in a context.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadContext {
    /// The row, by number in [`Analysis::contexts`](crate::Analysis::contexts).
    pub context: u32,
    /// Calls begun.
    pub calls: u64,
    /// Time including the library calls made inside.
    pub total_ns: Ns,
    /// Time without the library calls made inside.
    pub self_ns: Ns,
    /// The part of `self_ns` in which it waited.
    pub wait_ns: Ns,
}

/// What a thread spent in an API.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThreadApi {
    /// The API, by number in [`Analysis::apis`](crate::Analysis::apis).
    pub api: u32,
    /// Calls begun.
    pub calls: u64,
    /// Time of the outermost calls, including the library calls made inside.
    pub total_ns: Ns,
    /// Time without the library calls made inside.
    pub self_ns: Ns,
    /// The part of `self_ns` in which it waited, as in [`Measures::wait_ns`](crate::Measures::wait_ns).
    pub wait_ns: Ns,
    /// The part of `self_ns` in which it was ready to run and another thread ran; 0 if the scheduler was not
    /// observed.
    pub preempted_ns: Ns,
    /// Mean of the argument that says how much work a call does, if known ([`ApiRow::argument`](crate::ApiRow::argument)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_mean: Option<f32>,
}

/// A difference as a number that is small if the difference is, whatever its sign.
fn difference(of: Ns, from: Ns) -> u64 {
    let difference = of.0.wrapping_sub(from.0) as i64;
    ((difference << 1) ^ (difference >> 63)) as u64
}

fn with_difference(from: u64, difference: u64) -> Ns {
    let difference = (difference >> 1) as i64 ^ -((difference & 1) as i64);
    Ns(from.wrapping_add(difference as u64))
}

impl Pack for ThreadApi {
    const COUNT: usize = 7;

    fn numbers(&self) -> [u64; MOST] {
        let mean = self.argument_mean.map_or(0, |mean| 1 + u64::from(mean.to_bits()));
        // The total is mostly the call's own time.
        let inside = difference(self.total_ns, self.self_ns);
        let (waited, preempted) = (self.wait_ns.0, self.preempted_ns.0);
        [u64::from(self.api), self.calls, self.self_ns.0, inside, waited, preempted, mean]
    }

    fn of_numbers([api, calls, own, inside, waited, preempted, mean]: [u64; MOST]) -> Self {
        Self {
            api: api as u32,
            calls,
            total_ns: with_difference(own, inside),
            self_ns: Ns(own),
            wait_ns: Ns(waited),
            preempted_ns: Ns(preempted),
            argument_mean: mean.checked_sub(1).map(|bits| f32::from_bits(bits as u32)),
        }
    }
}

impl Pack for ThreadContext {
    const COUNT: usize = 5;

    fn numbers(&self) -> [u64; MOST] {
        let inside = difference(self.total_ns, self.self_ns);
        let numbers = [u64::from(self.context), self.calls, self.self_ns.0, inside, self.wait_ns.0];
        let [context, calls, own, inside, waited] = numbers;
        [context, calls, own, inside, waited, 0, 0]
    }

    fn of_numbers([context, calls, own, inside, waited, ..]: [u64; MOST]) -> Self {
        Self {
            context: context as u32,
            calls,
            total_ns: with_difference(own, inside),
            self_ns: Ns(own),
            wait_ns: Ns(waited),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_out() {
        let times = [0, 1, 127, 128, 1_000_000, u64::MAX / 2, u64::MAX];
        let apis: Vec<ThreadApi> = times
            .iter()
            .zip(times.iter().rev())
            .flat_map(|(&a, &b)| {
                [None, Some(0.0), Some(-1.5), Some(f32::MAX)].map(|argument_mean| ThreadApi {
                    api: a as u32,
                    calls: b,
                    total_ns: Ns(a),
                    self_ns: Ns(b),
                    wait_ns: Ns(b),
                    preempted_ns: Ns(a),
                    argument_mean,
                })
            })
            .collect();
        let packed: Packed<ThreadApi> = apis.iter().copied().collect();
        assert!(packed.iter().eq(apis.iter().copied()) && packed.len() == apis.len());
        let contexts = times.map(|ns| ThreadContext {
            context: ns as u32,
            calls: ns,
            total_ns: Ns(u64::MAX - ns),
            self_ns: Ns(ns),
            wait_ns: Ns(ns / 2),
        });
        let packed: Packed<ThreadContext> = contexts.into_iter().collect();
        assert!(packed.iter().eq(contexts) && !packed.is_empty());
        assert_eq!(
            serde_json::to_value(Packed::<ThreadApi>::default()).expect("a list"),
            serde_json::json!([])
        );
    }

    #[test]
    fn small_numbers_take_a_byte_each_and_no_time_beside_the_own_none() {
        let item = ThreadContext {
            context: 5,
            calls: 2,
            total_ns: Ns(99),
            self_ns: Ns(99),
            wait_ns: Ns(0),
        };
        let mut packed: Packed<ThreadContext> = [item; 10].into_iter().collect();
        assert_eq!(packed.bytes.len(), 30);
        let waited = ThreadContext { wait_ns: Ns(1), ..item };
        assert_eq!([waited; 10].into_iter().collect::<Packed<_>>().bytes.len(), 50);
        packed.change(|item| item.calls += 1);
        assert!(packed.iter().all(|changed| changed == ThreadContext { calls: 3, ..item }));
        packed.clear();
        assert!(packed.is_empty() && packed.iter().next().is_none());
    }
}
