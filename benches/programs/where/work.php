<?php
$sum = 0;
for ($round = 0; $round < 12; $round++) {
    $rows = [];
    for ($i = 0; $i < 60000; $i++)
        $rows["item " . ($i * 7919) % 60013] = ["id" => $i, "text" => md5((string)$i)];
    ksort($rows);
    $text = json_encode($rows);
    $sum += strlen(preg_replace('/item (\d+)/', '$1', $text)) + count(json_decode($text, true));
    $sum += strlen(gzcompress(substr($text, 0, 600000)));
}
echo $sum, "\n";
