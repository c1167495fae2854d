// String operators.
#include "type/text.h"

#include <algorithm>

#include "host/regex.h"
#include "import/onnx/node/broadcast.h"
#include "import/onnx/node/context.h"
#include "import/onnx/operators/dynamic.h"
#include "import/onnx/operators/list.h"
#include "ops/host.h"

namespace hone::onnx {

namespace {

Value literal(NodeContext& c, std::vector<std::int64_t> dims,
              const std::vector<std::string_view>& texts) {
  return constant_value(c.graph(), text_array(std::move(dims), texts));
}

Value text_operand(NodeContext& c, std::size_t i) {
  Value x = c.in(i);
  if (x.dtype() != DType::text) c.fail(cat("input ", i, " is ", x.type(), ", expected strings"));
  return x;
}

Values string_concat(NodeContext& c) {
  const auto [a, b] = broadcast_operands(c, text_operand(c, 0), text_operand(c, 1));
  return {ops::text_concat(a, b)};
}

Values regex_full_match(NodeContext& c) {
  const std::string_view pattern = c.text("pattern", "");
  try {
    Regex valid(pattern);
  } catch (const UserError& e) {
    c.fail(e.what());
  }
  return {ops::text_match(text_operand(c, 0), literal(c, {}, {pattern}))};
}

// The string with the most pieces determines the size of the last axis.
Values string_split(NodeContext& c) {
  constexpr std::int64_t most_pieces = 4096;
  Value x = text_operand(c, 0), delimiter = literal(c, {}, {c.text("delimiter", "")});
  const std::int64_t splits = c.has_attribute("maxsplit") ? c.integer("maxsplit", 0) : -1;
  if (splits < -1) c.bad_attribute("maxsplit", splits, "-1 (no limit) or more");
  Value counts = ops::text_pieces(Values{x, delimiter}, {{"count", splits}});
  Value zero = integer_list(c.graph(), {0});
  Value widest = reduce_axes(ops::reduce_max, concat_values(Values{zero, flatten(counts)}, 0), {0});
  const std::int64_t most = splits < 0 ? most_pieces : std::min(splits, most_pieces - 1) + 1;
  const Dim pieces = c.measured(widest, most);
  return {ops::text_split(Values{x, delimiter}, {{"dims", Dims{pieces}}, {"count", splits}}),
          counts};
}

// ==== StringNormalizer

Value in_case(Value x, std::string_view kind) {
  return ops::text_case(x, {{"kind", std::string(kind)}});
}

// Whether each of the words [n] is not a stop word.
Value is_kept(NodeContext& c, Value words, const std::vector<std::string_view>& stop) {
  Value stops = literal(c, {std::ssize(stop)}, stop);
  if (!c.flag("is_case_sensitive")) {
    words = in_case(words, "lower");
    stops = in_case(stops, "lower");
  }
  const Shape pairs = {words.shape()[0], std::ssize(stop)};
  Value is_stop = ops::eq(broadcast_to(unsqueeze(words, {1}), pairs), broadcast_to(stops, pairs));
  return ops::bit_not(reduce_axes(ops::reduce_or, is_stop, {1}));
}

// The kept words, or one empty string if there are none: it is appended for that case.
Value without(NodeContext& c, Value words, const std::vector<std::string_view>& stop) {
  Value kept = is_kept(c, words, stop);
  Value none = unsqueeze(ops::bit_not(reduce_axes(ops::reduce_or, kept, {0})), {0});
  words = concat_values(Values{words, literal(c, {1}, {""})}, 0);
  Chosen found = chosen(concat_values(Values{kept, none}, 0));
  const Dim n = c.measured(found.count, words.shape()[0]);
  return ops::gather(Values{words, slice_axis(found.places, 0, 0, n)}, {{"axis", std::int64_t{0}}});
}

// Rejects languages with different case conversion rules.
void check_locale(NodeContext& c) {
  const std::string_view name = c.text("locale", "en_US");
  for (std::string_view other : {"tr", "az", "lt"})
    if (name.starts_with(other))
      c.unsupported(cat("attribute 'locale' is '", name,
                        "', which has case rules of its own that are not supported"));
}

Values string_normalizer(NodeContext& c) {
  Value x = text_operand(c, 0), words = flatten(x);
  if (x.rank() != 1 && (x.rank() != 2 || x.shape()[0] != Dim(1)))
    c.bad_input(0, "X", "[n] or [1, n]");
  check_locale(c);
  c.ignore("is_case_sensitive");  // relevant to stop words only
  const std::vector<std::string_view> stop =
      c.texts("stopwords").value_or(std::vector<std::string_view>());
  if (!stop.empty()) words = without(c, words, stop);
  const std::string_view action = c.text("case_change_action", "NONE");
  if (action == "LOWER" || action == "UPPER")
    words = in_case(words, action == "LOWER" ? "lower" : "upper");
  else if (action != "NONE")
    c.bad_attribute("case_change_action", action, "NONE, LOWER or UPPER");
  return {x.rank() == 2 ? unsqueeze(words, {0}) : words};
}

constexpr ImportEntry text_table[] = {
    {"StringConcat", string_concat, 20},
    {"StringSplit", string_split, 20},
    {"RegexFullMatch", regex_full_match, 20},
    {"StringNormalizer", string_normalizer, 10},
};

}  // namespace

std::span<const ImportEntry> text_imports() { return text_table; }

}  // namespace hone::onnx
