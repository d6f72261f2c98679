# In a chroot with Debian's smallest system: the package given is installed, used by root and by an ordinary user, and removed.
set -eu
mount -t proc proc /proc
mount -t sysfs sysfs /sys 2>/dev/null || true
mount -t tmpfs tmpfs /tmp

fail() { echo "FAILED: $*"; exit 1; }
files() { find / -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path /var/lib/dpkg -o -path /var/log -o -path /var/cache \) -prune -o -print | sort; }

id ordinary >/dev/null 2>&1 || useradd --create-home ordinary
ldconfig
files >/tmp/before

echo "--- install"
dpkg --install "$1"

cat >/tmp/use.sh <<'END'
set -eu
cd /tmp/$(id -un)
fail() { echo "FAILED: $*"; exit 1; }
chase record --follow none -- sh -c 'ls /usr/bin | sort -r | tail -3' >output 2>said || fail "chase record: $(cat said)"
[ "$(cat output)" = "$(ls /usr/bin | sort -r | tail -3)" ] || fail "the program said something else"
cat said
grep -q 'Recorded in' said || fail "no summary"
chase-report --no-pager >report || fail "chase-report"
grep -q 'libc.so.6' report || fail "no libc.so.6 in the report"
chase report html -o page.html >/dev/null || fail "chase report html"
mkdir plain # (Under chroot none is made.)
LD_PRELOAD=libchase.so CHASE_OUTPUT=plain ls / >/dev/null
ls plain/*.chase >/dev/null || fail "LD_PRELOAD=libchase.so alone"
END

for user in root ordinary; do
	echo "--- as $user"
	mkdir -p /tmp/$user
	chown $user /tmp/$user
	su $user -s /bin/sh -c 'sh /tmp/use.sh'
done
chase doctor || true
chase check /bin/ls >/dev/null || fail "chase check"
getcap /usr/bin/chase-companion 2>/dev/null || true
[ -f /usr/include/chase.h ] || fail "no chase.h"
for page in chase chase-report; do
	ls /usr/share/man/man1/$page.1.gz >/dev/null || echo "(no man page of $page: dpkg leaves them out here)"
done

echo "--- remove"
sleep 6 # (The companion stays for five seconds.)
dpkg --purge chase-profiler
files >/tmp/after
diff /tmp/before /tmp/after || fail "these files were left"
[ ! -e /usr/bin/chase ] || fail "chase is there still"
echo "--- all is as it was"
