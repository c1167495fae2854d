// Operations computed by host functions (src/host, under the same names) on untrusted bytes and
// strings. They fail on most random data, so they are not in all_ops(), whose samples are random.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/op.h"

namespace hone {

namespace ops {
extern const Op decode_image;  // attrs: kind, count
extern const Op text_literal;
extern const Op text_concat;
extern const Op text_pieces;  // attrs: count
extern const Op text_split;   // attrs: dims, count
extern const Op text_match;
extern const Op text_case;  // attrs: kind
extern const Op text_of_integer;
extern const Op text_of_real;  // attrs: count
extern const Op integer_of_text;
extern const Op real_of_text;
}  // namespace ops

std::span<const Op* const> host_ops();
bool is_host_op(const Op&);
// How attributes are passed to the host function: numbers by name, kind as its index in the list of
// words that the operation accepts.
std::vector<std::pair<std::string, std::int64_t>> host_settings(const Op&, const Attrs&);

}  // namespace hone
