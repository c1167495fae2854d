// The program of load.c, in C++ without exceptions and run-time types.
#include "load.c"
