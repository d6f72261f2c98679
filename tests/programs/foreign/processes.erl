%% Very many processes on a few threads, each with a heap of its own; exceptions; libz called from the virtual machine.
-module(processes).
-export([main/0]).

main() ->
    Self = self(),
    Pids = [spawn_link(fun() -> Self ! {self(), work(N)} end) || N <- lists:seq(1, 200)],
    Sum = lists:sum([receive {Pid, Result} -> Result end || Pid <- Pids]),
    io:format("~p~n", [Sum]),
    io:format("~p~n", [lists:sum([caught(N) || N <- lists:seq(1, 3000)])]),
    Text = binary:copy(<<"a text that repeats itself, ">>, 5000),
    io:format("~p~n", [zlib:uncompress(zlib:compress(Text)) =:= Text]),
    io:format("~p~n", [[erlang:crc32(Text), erlang:phash2(ring(300))]]),
    {_, Monitor} = spawn_monitor(fun() -> exit(left) end),
    receive {'DOWN', Monitor, process, _, Why} -> io:format("~p~n", [Why]) end,
    io:format("~ts", [os:cmd("echo from a child")]),
    {match, Found} = re:run(Text, "(t[a-z]+) ", [global, {capture, first, list}]),
    io:format("~p~n", [length(Found)]),
    halt(3).

work(N) ->
    Lists = [lists:seq(1, I rem 50) || I <- lists:seq(1, 300)],
    erlang:garbage_collect(),
    Sizes = [length(integer_to_list(N bsl length(List))) || List <- lists:sort(Lists)],
    lists:sum(Sizes).

caught(N) ->
    try deep(N rem 20) catch throw:left -> 1; error:badarg -> 2 after erlang:md5(<<N:64>>) end.

deep(0) -> throw(left);
deep(13) -> binary_to_integer(<<"none">>);
deep(N) -> 1 + deep(N - 1).

%% A token that passes all of them.
ring(Size) ->
    Last = lists:foldl(fun(_, Next) -> spawn(fun() -> receive {token, Hops} -> Next ! {token, Hops + 1} end end) end, self(), lists:seq(1, Size)),
    Last ! {token, 0},
    receive {token, Hops} -> Hops end.
