# Work for Perl: hashes, sorting, recursion, regular expressions, die and eval; leaves with status 5.
use strict;
my %seen;
$seen{$_}++ for map { $_ * 7 % 101 } 1 .. 2000;
my $list = join ",", map { "$_=$seen{$_}" } sort { $a <=> $b } keys %seen;

sub factorial { my $n = shift; return $n < 2 ? 1 : $n * factorial($n - 1) }
my $text = "abc 123 def 456" x 50;
my $numbers = () = $text =~ /(\d+)/g;
eval { die "oops\n" };
print factorial(15), " $numbers $@", length($list), "\n";
local $SIG{USR1} = sub { print "signal\n" };
kill "USR1", $$;
printf "%.3f\n", sin(1) + sqrt(2);
exit 5;
