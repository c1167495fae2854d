// Operations that functions of the host compute (src/host, under the same names), on bytes and
// texts that nobody trusts. They fail on most random data, so they are no part of all_ops(), whose
// samples are random.
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
// How the function is told what attributes say: numbers by name, kind as its place in the list of
// words that the operation takes.
std::vector<std::pair<std::string, std::int64_t>> host_settings(const Op&, const Attrs&);

}  // namespace hone
