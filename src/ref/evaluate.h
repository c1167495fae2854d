// The reference interpreter: evaluates a Function by the plain definition of each core op. Used to
// verify every backend and to fold small constants; not fast, and never used to serve results.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/function.h"
#include "ir/op.h"

namespace hone {

enum class Mode : std::uint8_t {
  strict,    // every op rounds its result to its dtype
  stepwise,  // strict, and sums, contractions and convolutions round to f32 after every term
  wide,      // floats stay doubles; only casts round
};

// Results in the dtypes of the function. Throws UserError when sizes are inconsistent (naming the
// symbol and both values), a recorded check fails or `refuse` is reached.
std::vector<Array> evaluate(const Function&, std::span<const Array> inputs,
                            Mode mode = Mode::strict);
// The same without the final rounding.
std::vector<Wide> evaluate_wide(const Function&, std::span<const Array> inputs, Mode mode);

// Evaluates one function several times, in any mode: the expansion and the conversion of smaller
// constants to doubles are done once.
class Evaluator {
 public:
  explicit Evaluator(const Function&);  // which must outlive it
  ~Evaluator();
  std::vector<Wide> in(Mode, std::span<const Array> inputs);

 private:
  struct Kept;
  const Function& function_;
  std::unique_ptr<Kept> kept_;
};

// Values of symbols in one run.
using Sizing = std::unordered_map<std::string, std::int64_t>;

// Binds each symbol that is a complete size of a parameter and checks every other size against it;
// adds to `outer`, whose symbols a body may use too.
Sizing bind_sizes(const Function&, std::span<const std::vector<std::int64_t>> input_dims,
                  const Sizing& outer = {});
std::int64_t size_of(const Dim&, const Sizing&);
// Throws UserError for the first recorded equality that does not hold.
void check_sizes(const Function&, const Sizing&);
// Binds the symbol of an ops::measure node to the measured value, and runs the checks that need it.
void bind_measured(const Function&, NodeId measure, std::int64_t n, Sizing&);

// What the host function of an operation without `eval` computes.
std::vector<Wide> host_results(const Op&, const Attrs&, std::span<const Wide* const> inputs,
                               std::span<const Type> result_types,
                               const std::function<std::int64_t(const Dim&)>& size);

// Evaluates a function with the sizes of its caller.
std::vector<Wide> evaluate_in(const Function&, std::vector<Wide> inputs, const Sizing& outer, Mode);

}  // namespace hone
