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
[ -f /usr/include/chase.h ] || fail "no chase.h"
for user in root ordinary; do
	su $user -s /bin/sh -c 'cd /tmp/$(id -un) && chase doctor' >/tmp/doctor || fail "chase doctor as $user: $(cat /tmp/doctor)"
	cat /tmp/doctor
	grep -q 'libchase.so records' /tmp/doctor || fail "chase doctor as $user does not say that the library records"
	grep -q 'chase-report shows recordings' /tmp/doctor || fail "chase doctor as $user does not find chase-report"
done
chase check /bin/ls >/dev/null || fail "chase check"
# What a file system can't keep isn't there.
cp /bin/true /opt/probe
if setcap cap_bpf,cap_perfmon+ep /opt/probe 2>/dev/null; then
	getcap /usr/bin/chase-companion | grep -q 'cap_perfmon,cap_bpf=ep' || fail "capabilities: $(getcap /usr/bin/chase-companion)"
else
	echo "(no capabilities of files here)"
fi
rm /opt/probe
chase-companion --version
for program in chase chase-report chase-companion; do
	case "$($program --version)" in
	"$program "[0-9]*) ;;
	*) fail "$program --version" ;;
	esac
	ls /usr/share/man/man1/$program.1.gz >/dev/null || grep -rqs 'path-exclude.*man' /etc/dpkg || fail "no man page of $program"
	ls /usr/share/bash-completion/completions/$program /usr/share/zsh/site-functions/_$program \
		/usr/share/fish/vendor_completions.d/$program.fish >/dev/null || fail "no completions of $program"
done
(
	# What bash does when somebody presses the tabulator.
	command -v bash >/dev/null || exit 0
	bash -c '. /usr/share/bash-completion/completions/chase
		COMP_WORDS=(chase rec) COMP_CWORD=1
		_chase chase rec chase && [ "${COMPREPLY[*]}" = record ]'
) || fail "bash does not complete chase rec"

echo "--- remove"
sleep 6 # (The companion stays for five seconds.)
dpkg --purge chase-profiler
files >/tmp/after
diff /tmp/before /tmp/after || fail "these files were left"
[ ! -e /usr/bin/chase ] || fail "chase is there still"
echo "--- all is as it was"
