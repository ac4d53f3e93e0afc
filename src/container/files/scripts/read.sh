# read.sh ROOT PATH OFFSET LENGTH: a line of facts about the regular file PATH, then its bytes from
# OFFSET, LENGTH at most or all when that is `-`.
need readlink stat cat head dd
walk "$1" follow keep
regular
command exec 3<"./$name" || exit 113
opened 3 "$file"
stat -L -c "$facts" /proc/self/fd/3 || exit 113
# `dd` that copies nothing only moves the offset, which it shares with the shell.
[ "$2" = 0 ] || dd bs=1 skip="$2" count=0 <&3 2>/dev/null || exit 113
case $3 in
-) cat <&3 || exit 113 ;;
0) ;;
*) head -c "$3" <&3 || exit 113 ;;
esac
