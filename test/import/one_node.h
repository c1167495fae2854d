// Models of one node, whose operands are constants or inputs. Not a test itself.
#pragma once

#include <functional>

#include "support.h"

namespace hone {

struct Given {
  std::string name;
  Array value;
  bool is_constant = false;
};

// A model of one node with the given operands.
struct OneNode {
  OneNode(const std::string& op, const std::vector<Given>& given, int outputs = 1,
          std::int64_t opset = 21)
      : builder(opset) {
    std::vector<std::string> in, out;
    for (const Given& g : given) {
      in.push_back(g.name);
      if (g.name.empty()) continue;
      if (g.is_constant) {
        builder.constant(g.name, g.value);
        continue;
      }
      std::vector<std::string> sizes;
      for (std::int64_t d : g.value.dims()) sizes.push_back(cat(d));
      builder.input(g.name, g.value.dtype(), sizes);
      values.push_back(g.value);
    }
    for (int i = 0; i < outputs; ++i) out.push_back(cat("y", i));
    node = &builder.node(op, in, out);
    for (const std::string& o : out) builder.output(o);
  }

  std::vector<Array> run() const { return builder.run(values); }
  // The message with which the import or the run is refused.
  std::string refusal() const {
    try {
      run();
    } catch (const UserError& e) {
      return e.what();
    }
    return "ran without an error";
  }

  ModelBuilder builder;
  onnx_pb::Node* node;
  std::vector<Array> values;
};

// 0, 1, 2, ...
inline Array counting(std::vector<std::int64_t> dims) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, static_cast<double>(i));
  return a;
}

}  // namespace hone
