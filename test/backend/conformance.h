// What every Device, Stream and Target must do. A backend runs these tests by listing itself in a
// BackendCase and instantiating the suite: see backend_test.cpp.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "compile/compile.h"
#include "runtime/session.h"

namespace hone::test {

struct BackendCase {
  std::string name;
  std::function<std::shared_ptr<Device>()> open;
  const Backend* backend = nullptr;
  // True if unordered accesses are refused; otherwise their result is unspecified.
  bool finds_missing_waits = false;
  bool has_clock = false;  // Event::ms_since()
};

inline std::ostream& operator<<(std::ostream& out, const BackendCase& c) { return out << c.name; }

class BackendConformance : public testing::TestWithParam<BackendCase> {
 protected:
  std::shared_ptr<Device> device_ = GetParam().open();

  OwnedMemory memory(std::size_t bytes) const { return {device_, bytes}; }
  std::shared_ptr<const Plan> compiled(const Function&) const;
  std::unique_ptr<Session> session(std::shared_ptr<const Plan>) const;
  // Compiles, runs, and compares with the reference.
  void expect_as_reference(const Function&, const std::vector<Array>& inputs) const;
};

// One row of 128 numbers: its norm, products of it, donated caches of keys and values of which one
// place changes, and a softmax.
Function decoding_step(DType);

// Fails unless the results agree with the reference within the accepted error.
void expect_accepted(const std::vector<Array>& got, const Function&,
                     const std::vector<Array>& inputs);
// The message of the error that it throws, or "accepted".
std::string refusal(const std::function<void()>&);
// Bytes first, first + 1, ...
std::vector<std::byte> counting(std::size_t count, int first = 0);

}  // namespace hone::test
