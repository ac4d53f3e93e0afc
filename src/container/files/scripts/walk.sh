# Reaches a name below the root without ever acting outside of it.
#
# The working directory of the shell is a handle: whatever happens to the names that led to it, it
# stays the same directory. So each step is one `cd` by a single component, and before anything is
# read, made or changed the kernel is asked where the handle is. A component that was swapped for a
# link in between shows there, and the script ends without having acted.
#
# Statuses are those of status.rs. The first argument of every script is the root.

set -f
umask 022
root=$1
shift
nl='
'

need() {
    for program in "$@"; do
        command -v "$program" >/dev/null 2>&1 && continue
        printf 'missing program: %s\n' "$program" >&2
        exit 112
    done
}

# Ends unless the working directory is where the walk believes it is.
inside() {
    at=$(readlink /proc/self/cwd && printf x) || exit 105
    [ "${at%"$nl"x}" = "$here" ] || exit 105
}

# Ends unless descriptor $1 is the file $2. A file that was replaced or removed since it was opened
# keeps the name it had, with a mark.
opened() {
    at=$(readlink "/proc/self/fd/$1" && printf x) || exit 105
    at=${at%"$nl"x}
    [ "$at" = "$2" ] || [ "$at" = "$2 (deleted)" ] || exit 105
}

# Sets $file to the name of $name in the directory $here.
locate() {
    case $here in
    /) file=/$name ;;
    *) file=$here/$name ;;
    esac
    [ "$name" != . ] || file=$here
}

# Enters the directory that holds $1, following links; $name is then the last component, which may
# not exist, or `.` when $1 ends in a directory. A link in the last component is followed when $2 is
# `follow`. Missing directories are an error when $3 is `keep`, and are made when it is `make`, or
# `directory` when $1 itself is to be one.
walk() {
    rest=$1
    cd -P -- "$root" 2>/dev/null || exit 111
    here=$root
    name=.
    links=0
    through=
    while [ -n "$rest" ]; do
        case $rest in
        */*) component=${rest%%/*} rest=${rest#*/} last= ;;
        *) component=$rest rest= last=1 ;;
        esac
        case $component in
        '' | .) continue ;;
        ..)
            [ "$here" != "$root" ] || exit 101
            cd -P .. 2>/dev/null || exit 110
            here=${here%/*}
            [ -n "$here" ] || here=/
            continue
            ;;
        esac
        if [ -h "./$component" ]; then
            if [ -n "$last" ] && [ "$2" != follow ]; then
                name=$component
                break
            fi
            follow_link
        elif [ -n "$last" ]; then
            name=$component
            break
        else
            enter "$3"
        fi
    done
    inside
    locate
}

# Puts the target of the link $component in front of $rest.
follow_link() {
    links=$((links + 1))
    [ "$links" -le 40 ] || exit 104
    target=$(readlink "./$component" && printf x) || exit 105
    target=${target%"$nl"x}
    case $target in
    /*) exit 101 ;;
    esac
    [ -n "$rest" ] || through=1
    if [ -n "$last" ]; then
        rest=$target
    else
        rest=$target/$rest
    fi
}

# Enters the directory $component, which $1 says to make if it is missing.
enter() {
    if [ ! -d "./$component" ]; then
        if [ -e "./$component" ] || [ -h "./$component" ]; then
            [ -z "$rest" ] && [ "$1" = directory ] && exit 108
            exit 103
        fi
        [ -x . ] || exit 110
        [ "$1" != keep ] || exit 102
        # A link that leads to nothing is something else than a directory.
        [ -n "$rest" ] || [ -z "$through" ] || [ "$1" != directory ] || exit 108
        inside
        # Somebody else may have made it in the meantime; what is there shows when it is entered.
        mkdir "./$component" || [ -d "./$component" ] || exit 113
    fi
    cd -P "./$component" 2>/dev/null || {
        [ -d "./$component" ] || exit 105
        exit 110
    }
    case $here in
    /) here=/$component ;;
    *) here=$here/$component ;;
    esac
}

# Ends with the status that says what the special file $1 is.
special() {
    [ ! -p "$1" ] || exit 121
    [ ! -S "$1" ] || exit 122
    [ ! -b "$1" ] || exit 123
    [ ! -c "$1" ] || exit 124
    # What is none of these any more was swapped since it was looked at.
    [ -e "$1" ] && [ ! -f "$1" ] && [ ! -d "$1" ] || exit 105
    exit 125
}

# Ends unless ./$name is a regular file, links not followed.
regular() {
    [ ! -h "./$name" ] || exit 105
    [ ! -d "./$name" ] || exit 106
    if [ ! -e "./$name" ]; then
        [ -x . ] || exit 110
        exit 102
    fi
    [ -f "./$name" ] || special "./$name"
}

# What `stat` is asked for: type and mode, size, owner, group, and the time in both of its forms,
# because only the second has fractions.
facts='%f %s %u %g %Y %y'
