# mkdir.sh ROOT PATH: makes the directory PATH and its missing parents.
need readlink mkdir
walk "$1/" follow directory
