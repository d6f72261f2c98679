open my $in, '<', 'more-lines' or die;
my (%seen, $sum);
while (<$in>) {
    chomp;
    my $key = substr($_, 0, 3);
    push @{$seen{$key}}, length $_;
    $sum += hex(substr($_, 8, 4)) if /[0-9a-f]{4}7/;
}
print join(' ', map { $_ . scalar @{$seen{$_}} } (sort keys %seen)[0..9]), " $sum\n";
