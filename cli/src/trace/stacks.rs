//! What samples found, as stacks of functions.

use std::collections::HashMap;

use chase_analyzer::{CodeAddress, LaneSample};
use chase_export::TraceFunction;

use crate::report::Report;

/// Functions and stacks of a trace, numbered as they are found.
pub(super) struct TraceStacks<'r> {
    report: &'r Report,
    /// Those that are called, as the analysis has them, and then those whose code ran.
    pub(super) functions: Vec<TraceFunction>,
    pub(super) stacks: Vec<Vec<u32>>,
    ran: HashMap<(String, u32), u32>,
    /// By process and address, and object.
    by_address: HashMap<(usize, CodeAddress, u32), u32>,
    known: HashMap<Vec<u32>, u32>,
}

impl<'r> TraceStacks<'r> {
    pub(super) fn new(report: &'r Report, functions: Vec<TraceFunction>) -> Self {
        Self {
            report,
            functions,
            stacks: Vec::new(),
            ran: HashMap::new(),
            by_address: HashMap::new(),
            known: HashMap::new(),
        }
    }

    /// Returns the number of a sample's stack: the library calls that it was in, outermost first, and the function that ran.
    pub(super) fn number(&mut self, process: usize, found: &LaneSample) -> u32 {
        let analysis = &self.report.analysis;
        let mut stack = Vec::new();
        let mut context = found.context.and_then(|number| analysis.contexts.get(number as usize));
        while let Some(row) = context {
            stack.push(row.api);
            context = row.parent.and_then(|number| analysis.contexts.get(number as usize));
        }
        stack.reverse();
        let leaf = self.function(process, found.sample.address, found.sample.object);
        // A library function is often the one that runs, too.
        let is_called =
            |&call: &u32| self.functions[call as usize] == self.functions[leaf as usize];
        if !stack.last().is_some_and(is_called) {
            stack.push(leaf);
        }
        if let Some(&number) = self.known.get(&stack) {
            return number;
        }
        let number = self.stacks.len() as u32;
        self.known.insert(stack.clone(), number);
        self.stacks.push(stack);
        number
    }

    fn function(&mut self, process: usize, address: CodeAddress, object: u32) -> u32 {
        let key = (process, address, object);
        if let Some(&number) = self.by_address.get(&key) {
            return number;
        }
        let library = self.report.names.object(object).to_owned();
        let name = self.report.code(process, &address, object);
        let number = *self.ran.entry((name.clone(), object)).or_insert_with(|| {
            self.functions.push(TraceFunction { name, library });
            self.functions.len() as u32 - 1
        });
        self.by_address.insert(key, number);
        number
    }
}
