// Models at another number of rows than they were written for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "import/import.h"

namespace hone {

// Sets the open sizes that lead inputs to `batch`. Whether there was one; then import again.
bool open_batch(const Imported&, std::int64_t batch, ImportOptions&);
// Gives all inputs that start with the first one's first size `batch` rows instead; the results of
// each row are those of the model as it is. Returns notes, one line each. Throws UserError that
// names the node for which that cannot be shown.
std::vector<std::string> set_batch(Imported&, std::int64_t batch);

}  // namespace hone
