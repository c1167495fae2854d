#include "optimize/batch.h"

#include <algorithm>
#include <optional>

#include "base/amount.h"
#include "pass/rebatch.h"

namespace hone {

namespace {

// Null: the parameter has no axes.
const Dim* first_size(const Function::Param& p) {
  const Type& t = p.value.type();
  return t.is_tensor() && t.rank() > 0 ? &t.shape.dims[0] : nullptr;
}

std::int64_t batch_of(const Function& f) {
  for (const Function::Param& p : f.params())
    if (const Dim* d = first_size(p); d && d->is_number()) return d->number();
  throw UserError("--batch: no input of the model has a first axis");
}

}  // namespace

bool open_batch(const Imported& imported, std::int64_t batch, ImportOptions& options) {
  bool is_open = false;
  for (const Function::Param& p : imported.variants[0].function.params())
    if (const Dim* d = first_size(p); d && d->is_symbol()) {
      is_open = true;
      options.dims.insert_or_assign(std::string(d->name()), ImportOptions::Range{batch, batch});
    }
  return is_open;
}

std::vector<std::string> set_batch(Imported& imported, std::int64_t batch) {
  const Function& first = imported.variants[0].function;
  const std::int64_t now = batch_of(first);
  if (now == batch) return {};
  if (now == 0 || batch % now != 0)
    throw UserError("--batch ", batch, ": the model computes ", amount(now, "row", "rows"),
                    " at a time; give a multiple of that");
  std::vector<std::string> notes;
  std::vector<bool> has_batch;
  for (const Function::Param& p : first.params()) {
    const Dim* d = first_size(p);
    has_batch.push_back(d && *d == Dim(now));
    if (!has_batch.back())
      notes.push_back(
          cat("note: input '", p.name, "' ", p.value.type(), " is the same for all rows"));
  }
  for (auto& v : imported.variants) {
    Rebatched made;
    try {
      made = rebatch(v.function, has_batch, batch / now);
    } catch (const UserError& e) {
      throw UserError("--batch ", batch,
                      ": the rows cannot be shown to be independent of each other: ", e.what(),
                      "; export the model with an open batch");
    }
    if (&v == imported.variants.data())
      for (const std::string& note : made.notes) notes.push_back("note: " + note);
    v.function = std::move(made.function);
  }
  return notes;
}

}  // namespace hone
