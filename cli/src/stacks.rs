//! The calling-context tree with names, as formats of other tools want it.

use std::collections::HashMap;

use chase_analyzer::{Analysis, GroupRow, LibraryKind, Ns, group_tree};
use chase_export::{Frame, Node, Stacks};

use crate::names::Names;

/// A calling context of any tree; its parent comes before it.
struct Context {
    parent: Option<u32>,
    caller: u32,
    api: u32,
    calls: u64,
    self_ns: Ns,
}

/// The contexts of `analysis`. Each application is a root with its own time, and so is a library that threads run; calls made in no
/// other call are in that of the program that made them.
pub(crate) fn from_analysis(analysis: &Analysis, names: &Names) -> Stacks {
    let has_own_code = |row: &&chase_analyzer::LibraryRow| {
        row.kind == LibraryKind::Application || row.own_code_ns > Ns(0)
    };
    let roots = analysis.libraries.iter().filter(has_own_code);
    let contexts = analysis.contexts.iter().map(|row| Context {
        parent: row.parent,
        caller: row.caller,
        api: row.api,
        calls: row.measures.calls,
        self_ns: row.measures.self_ns,
    });
    build(analysis, names, roots.map(|row| (row.object, row.own_code_ns)), contexts)
}

/// The same by time on the processor, as samples tell: what ran in no library call is in the object that it was in. `None` where
/// none were taken.
pub(crate) fn on_cpu(analysis: &Analysis, names: &Names) -> Option<Stacks> {
    let contexts = analysis.contexts.iter().map(|row| Context {
        parent: row.parent,
        caller: row.caller,
        api: row.api,
        calls: row.measures.calls,
        self_ns: row.on_cpu_ns,
    });
    let is_sampled = analysis.on_cpu.samples > 0;
    is_sampled.then(|| build(analysis, names, analysis.on_cpu.outside.iter().copied(), contexts))
}

/// The contexts of a thread group.
pub(crate) fn of_group(analysis: &Analysis, names: &Names, group: &GroupRow) -> Stacks {
    let mut objects = (0..).zip(&analysis.objects);
    let program = objects.find(|(_, row)| row.executable && row.path == group.executable);
    let contexts = group_tree(analysis, group).into_iter().map(|row| Context {
        parent: row.parent,
        caller: row.caller,
        api: row.api,
        calls: row.calls,
        self_ns: row.self_ns,
    });
    build(analysis, names, program.map(|(number, _)| (number, group.application_ns)), contexts)
}

fn build(
    analysis: &Analysis,
    names: &Names,
    applications: impl IntoIterator<Item = (u32, Ns)>,
    contexts: impl Iterator<Item = Context>,
) -> Stacks {
    let mut stacks = Stacks::default();
    let mut roots: HashMap<u32, u32> = HashMap::new();
    for (object, self_ns) in applications {
        root(&mut stacks, &mut roots, analysis, names, object, self_ns.0);
    }
    let mut programs = roots
        .iter()
        .filter(|(object, _)| analysis.objects.get(**object as usize).is_some_and(|o| o.executable))
        .map(|(_, &root)| root);
    let only = programs.next().filter(|_| programs.next().is_none());
    let first_api = stacks.frames.len() as u32;
    let apis = analysis.apis.iter().enumerate();
    let apis = apis.map(|(number, api)| frame(analysis, names, api.object, names.full(number)));
    stacks.frames.extend(apis);
    // Roots that libraries need come between, so that contexts get new numbers.
    let mut numbers: Vec<u32> = Vec::new();
    for context in contexts {
        let parent = match context.parent {
            Some(parent) => numbers[parent as usize],
            None => match roots.get(&context.caller).copied().or(only) {
                Some(root) => root,
                None => root(&mut stacks, &mut roots, analysis, names, context.caller, 0),
            },
        };
        numbers.push(stacks.nodes.len() as u32);
        stacks.nodes.push(Node {
            parent: Some(parent),
            frame: first_api + context.api,
            calls: context.calls,
            self_ns: context.self_ns.0,
        });
    }
    stacks
}

/// Adds an object by itself, as what others are called in; gives its node.
fn root(
    stacks: &mut Stacks,
    roots: &mut HashMap<u32, u32>,
    analysis: &Analysis,
    names: &Names,
    object: u32,
    self_ns: u64,
) -> u32 {
    let (number, frame_number) = (stacks.nodes.len() as u32, stacks.frames.len() as u32);
    stacks.frames.push(frame(analysis, names, object, names.object(object)));
    stacks.nodes.push(Node { parent: None, frame: frame_number, calls: 0, self_ns });
    roots.insert(object, number);
    number
}

fn frame(analysis: &Analysis, names: &Names, object: u32, function: &str) -> Frame {
    let row = analysis.objects.get(object as usize);
    Frame {
        function: function.to_owned(),
        library: names.object(object).to_owned(),
        path: row.map(|row| row.path.clone()).unwrap_or_default(),
        build_id: row.map(|row| row.build_id.clone()).unwrap_or_default(),
    }
}
