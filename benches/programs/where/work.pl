use strict;
use warnings;
my %counts;
for my $i (1 .. 3_000_000) {
    my $key = substr(($i * 7919) . "", -3);
    $counts{$key} .= chr(97 + $i % 26);
    $counts{$key} =~ s/[xyz]+$/-/ if $i % 3 == 0;
}
my $text = join ",", map { "$_=" . length $counts{$_} } sort keys %counts;
print length $text, "\n";
