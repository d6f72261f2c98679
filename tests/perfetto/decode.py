"""Reads a trace by the definitions that PyPI's `perfetto` has, checks its order and nesting, and says as JSON what is in it.

python3 decode.py TRACE, with the package in PYTHONPATH: `cargo xtask perfetto` puts it there.
"""

import collections
import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as definitions

trace = definitions.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())

problems = []
tracks = {}
names, categories = {}, {}
open_slices = collections.defaultdict(list)
latest = {}
totals = collections.defaultdict(lambda: [0, 0])
began, ended = {}, {}
slices = 0
functions, frames, stacks = {}, {}, {}
samples = collections.defaultdict(list)


def owner(uuid):
    """The thread that a track, or what it is below, belongs to: its name."""
    while uuid in tracks and not tracks[uuid].HasField("thread"):
        uuid = tracks[uuid].parent_uuid
    return tracks[uuid].thread.thread_name if uuid in tracks else None


for packet in trace.packet:
    for one in packet.interned_data.event_names:
        names[one.iid] = one.name
    for one in packet.interned_data.event_categories:
        categories[one.iid] = one.name
    for one in packet.interned_data.function_names:
        functions[one.iid] = one.str.decode()
    for one in packet.interned_data.frames:
        frames[one.iid] = functions[one.function_name_id]
    for one in packet.interned_data.callstacks:
        stacks[one.iid] = [frames[frame] for frame in one.frame_ids]
    if packet.HasField("perf_sample"):
        sample = packet.perf_sample
        if sample.callstack_iid not in stacks:
            problems.append(f"stack {sample.callstack_iid} is not known")
        if not stacks.get(sample.callstack_iid):
            problems.append(f"stack {sample.callstack_iid} is empty")
        samples[sample.tid].append(packet.timestamp)
    if packet.HasField("track_descriptor"):
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor
    if not packet.HasField("track_event"):
        continue
    event, at = packet.track_event, packet.timestamp
    track = event.track_uuid
    if track not in tracks:
        problems.append(f"an event of track {track}, which is not described before it")
        continue
    if at < latest.get(track, 0):
        problems.append(f"{at} comes after {latest[track]} on track {track}")
    latest[track] = at
    for flow in event.flow_ids:
        if flow in began:
            problems.append(f"flow {flow} begins twice")
        began[flow] = (at, owner(track))
    for flow in event.terminating_flow_ids:
        if flow in ended:
            problems.append(f"flow {flow} ends twice")
        ended[flow] = (at, owner(track))
    if event.type == definitions.TrackEvent.TYPE_SLICE_BEGIN:
        slices += 1
        if event.name_iid and event.name_iid not in names:
            problems.append(f"name {event.name_iid} is not known")
        of = [categories[iid] for iid in event.category_iids]
        open_slices[track].append((at, names.get(event.name_iid), of))
    elif event.type == definitions.TrackEvent.TYPE_SLICE_END:
        if not open_slices[track]:
            problems.append(f"an end at {at} on track {track}, where nothing is open")
            continue
        since, name, of = open_slices[track].pop()
        # Those of library calls have the library for a category.
        if of:
            total = totals[f"{of[0]}:{name}"]
            total[0] += 1
            total[1] += at - since

for track, still in open_slices.items():
    if still:
        problems.append(f"{len(still)} slices of track {track} do not end")
if set(began) != set(ended):
    problems.append("flows begin and do not end, or the other way around")
for flow in set(began) & set(ended):
    if began[flow][0] > ended[flow][0]:
        problems.append(f"flow {flow} ends before it begins")

threads = {track.thread.tid for track in tracks.values() if track.HasField("thread")}
for tid, times in samples.items():
    if tid not in threads:
        problems.append(f"samples of thread {tid}, which has no track")
    if times != sorted(times):
        problems.append(f"samples of thread {tid} are not in order")

json.dump(
    {
        "problems": problems,
        "slices": slices,
        "samples": sum(len(times) for times in samples.values()),
        "threads": sorted(track.thread.thread_name for track in tracks.values() if track.HasField("thread")),
        "flows": [[began[flow][1], ended[flow][1]] for flow in sorted(set(began) & set(ended))],
        "totals": totals,
    },
    sys.stdout,
)
