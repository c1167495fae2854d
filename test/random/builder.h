// A function under construction: values to use as operands, their numbers for one input, and ways
// to find or make an operand of a given type. It does not name any operation; makers.h does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "ops/common.h"
#include "ref/evaluate.h"
#include "verify/reduce/case.h"
#include "verify/reduce/reduce.h"

namespace hone::fuzz {

// The sizes and dtypes of one function; there are few, so that values fit together.
struct Style {
  Dims sizes;                  // of axes; may include symbols
  Dims symbols;                // of the whole function
  Sizing sample;               // values of the symbols while the function is built
  DType real = DType::f32;     // of most values
  DType whole = DType::i64;    // of most integers
  std::int64_t limit = 4096;   // elements of a value, at the largest sizes
  std::int64_t work = 200000;  // multiplications in one contraction
  bool checks = false;         // sizes may need a check at run time
};

// Bounds of the finite values, and how many values are not finite.
struct Range {
  double low = 0, high = 0;
  std::int64_t count = 0, special = 0;
};

class Builder {
 public:
  // A body (of if_else or while_loop) is closed: its only parameters are those it starts with.
  Builder(Random& random, const Style& style, bool is_body = false)
      : random(random), style(style), is_body_(is_body) {}

  Random& random;
  const Style& style;
  // ONNX operators, and the node that each became.
  std::vector<std::pair<std::string_view, NodeId>> operators;

  Function& function() { return function_; }
  Graph& graph() { return function_.graph(); }
  const Values& pool() const { return pool_; }
  bool is_body() const { return is_body_; }

  // A parameter with the given value at the sample sizes, or with random numbers.
  Value param(const Type&, std::optional<Wide> value = std::nullopt);
  // Makes a value available as an operand, unless it is too large, needs a check that the style
  // does not allow, or carries no information (nearly all NaN).
  bool keep(Value);
  // The numbers of a value for the sample inputs. Throws UserError if it cannot be computed.
  const Wide& value(Value);
  Range range(Value);

  // A value of the pool that fits, usually one of the last; invalid if none does.
  template <class F>
  Value find(F fits) {
    for (int tries = 0; tries < 6; ++tries) {
      Value v = recent();
      if (fits(v)) return v;
    }
    Values all;
    for (const Value& v : pool_)
      if (fits(v)) all.push_back(v);
    return all.empty() ? Value() : random.of(all);
  }
  Value recent();
  Value real();     // float dtype
  Value numeric();  // not bool
  Value whole();    // integer dtype
  Value boolean();
  // At least `rank` axes, of any accepted dtype.
  Value ranked(int rank, bool (*accept)(DType) = [](DType) { return true; });

  // An operand of exactly this type: an existing value, one made from another by cast or broadcast,
  // a constant or a parameter.
  Value operand(const Type&);
  // Like operand, but usually a weight.
  Value weight(const Type&);
  // A scalar number of random size, usually a constant.
  Value scalar_operand(DType);
  Value constant_of(const Type&);  // static types only
  // Integers that are mostly valid indices for an axis of this size, in a random or the given
  // shape.
  Value indices(const Shape&, const Dim& size);

  Dim size();
  Shape shape(int rank);
  Shape shape() { return shape(random.of({0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5})); }
  DType dtype();
  bool fits(const Shape& s) const { return s.count().high() <= style.limit; }

 private:
  Value derived(const Type&);
  const std::vector<Wide>& results(NodeId);
  void evaluate(NodeId);

  Function function_;
  bool is_body_;
  Values pool_;
  std::size_t checks_ = 0;
  std::vector<std::vector<Wide>> values_;  // by node; empty until requested
};

}  // namespace hone::fuzz
