<?php
// Fibers that are suspended inside of C code that calls back, left there by exceptions, destroyed unfinished.
$fibers = [];
for ($i = 0; $i < 60; $i++) {
    $fibers[] = new Fiber(function () use ($i) {
        $numbers = [3, 1, 2, $i];
        usort($numbers, function ($a, $b) { Fiber::suspend(1); return $a <=> $b; });
        $sum = array_sum(array_map(fn ($x) => Fiber::suspend(2) + $x, $numbers));
        return crc32(preg_replace_callback('/\d/', fn ($m) => Fiber::suspend(3) . $m[0], "a$sum"));
    });
}
foreach ($fibers as $fiber) $fiber->start();
$sum = 0;
while ($fibers) {
    foreach ($fibers as $key => $fiber) {
        if (!$fiber->isTerminated()) { $fiber->resume(1); continue; }
        $sum += $fiber->getReturn();
        unset($fibers[$key]);
    }
    gc_collect_cycles();
}
echo $sum, "\n";

$left = 0;
for ($i = 0; $i < 300; $i++) {
    $fiber = new Fiber(function () {
        try { array_walk_recursive($GLOBALS['nested'], fn () => Fiber::suspend(1)); } finally { $GLOBALS['left']++; }
    });
    $nested = [1, [2, 3]];
    $fiber->start();
    try { $i % 2 ? $fiber->throw(new Exception('left')) : $fiber->resume(); } catch (Exception $e) { $left += 10; }
    unset($fiber); // destroyed where it is suspended, by an exception that unwinds it
}
gc_collect_cycles();
echo $left, "\n";

function numbers($n) { for ($i = 0; $i < $n; $i++) { $got = yield $i; if ($got) Fiber::suspend($got); } }
$outer = new Fiber(function () {
    $inner = new Fiber(function () { foreach (numbers(50) as $n) if ($n % 10 == 0) Fiber::suspend($n); return 'inner'; });
    for ($v = $inner->start(); !$inner->isTerminated(); $v = $inner->resume()) Fiber::suspend($v);
    return $inner->getReturn();
});
$seen = [];
for ($v = $outer->start(); !$outer->isTerminated(); $v = $outer->resume()) $seen[] = $v;
echo implode(',', $seen), $outer->getReturn(), "\n";
exit(3);
