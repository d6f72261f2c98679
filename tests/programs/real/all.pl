# An ordinary program: regular expressions, hashes, sorting, pipes, forks, eval and die.
use strict;
use warnings;
use List::Util qw(sum reduce);
use POSIX qw(floor strftime);
use Digest::MD5 qw(md5_hex);
use Socket;

my %count;
$count{$1}++ while ("abracadabra " x 200) =~ /(.)/g;
print join(",", map { "$_=$count{$_}" } sort keys %count), "\n";
my @sorted = sort { $a <=> $b } map { ($_ * 7919) % 1009 } 1 .. 1000;
print "@sorted[0 .. 5] ", sum(@sorted), "\n";
print md5_hex(pack("N*", @sorted)), "\n";
print strftime("%Y-%m-%d", gmtime(1_700_000_000)), " ", floor(-2.5), "\n";
for my $i (1 .. 300) {
    eval { die { code => $i } if $i % 2; 1 } or $count{died} += $@->{code};
}
print "died $count{died}\n";
print `echo from a child; exit 3`, $? >> 8, "\n";
open(my $pipe, "-|", "seq", "5") or die;
print map { chomp; "<$_>" } <$pipe>;
close $pipe;
print "\n";
socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die;
my $pid = fork();
if ($pid == 0) { syswrite $b, "child"; exit 4 }
sysread $a, my $text, 100;
waitpid $pid, 0;
print "$text ", $? >> 8, "\n";
local $SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; select undef, undef, undef, 5; };
print "caught $@";
print STDERR "to standard error\n";
exit 12;
