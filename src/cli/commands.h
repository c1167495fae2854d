// The subcommands of `hone`, one file each. Each reads its own arguments and returns an exit code;
// errors are thrown and become messages and codes in main.
#pragma once

#include <span>

#include "cli/run/arguments.h"
#include "cli/run/exit.h"

namespace hone::cli {

using Words = std::span<char* const>;

int optimize(Words);
int tune(Words);
int aot(Words);
int run(Words);
int bench(Words);
int selftest(Words);
int reduce(Words);
int validate(Words);
int explain(Words);
int inspect(Words);
int check(Words);
int export_model(Words);
int ops(Words);
int devices(Words);
int doctor(Words);
int flags(Words);

// Options of every subcommand that prints.
struct Printing {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
};
void add_printing(Arguments&, Printing&);

}  // namespace hone::cli
