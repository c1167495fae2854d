// Examples of operators: the second reading accepts their results and notices wrong ones.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "test/cli/second_reading_nodes.h"
#include "type/text.h"

namespace hone::test {
namespace {

// Adds slices of "a" to the state and takes slices of "b" from that. All sizes are 2, so that no
// shape tells axes and directions apart.
onnx::Node scan_of_two() {
  onnx::Attribute body;
  body.name = "body";
  body.kind = static_cast<std::int32_t>(onnx::Attribute::Kind::graph);
  body.graph = std::make_shared<onnx::Graph>();
  body.graph->nodes = {with_outputs(node("Add", {"state", "a"}), {"sum"}),
                       with_outputs(node("Sub", {"sum", "b"}), {"rest"})};
  const auto named = [](std::string_view name) {
    onnx::ValueInfo v;
    v.name = name;
    return v;
  };
  body.graph->inputs = {named("state"), named("a"), named("b")};
  body.graph->outputs = {named("sum"), named("rest")};
  return with_outputs(
      node("Scan", {"s", "x", "z"},
           {body, integer("num_scan_inputs", 2), integers("scan_input_axes", {1, 0}),
            integers("scan_input_directions", {1, 0}), integers("scan_output_axes", {1}),
            integers("scan_output_directions", {1})}),
      {"last", "y"});
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<Example> examples() {
  const DType f = DType::f32, i = DType::i64, u8 = DType::u8, i8 = DType::i8;
  return {
      {node("Relu", {"x"}), {{"x", {f, {3}, {-1, 0, 2}}}, {"y", {f, {3}, {0, 0, 2}}}}},
      {node("Sub", {"a", "b"}),
       {{"a", {f, {2, 1}, {1, 2}}},
        {"b", {f, {2}, {10, 20}}},
        {"y", {f, {2, 2}, {-9, -19, -8, -18}}}}},
      {node("Cast", {"x"}, {integer("to", 17)}),
       {{"x", {f, {4}, {500, 0.3, -0.0, 1e-9}}},
        {"y", {DType::f8e4m3fn, {4}, {448, 0.3125, -0.0, 0}}}}},
      {node("Cast", {"x"}, {integer("to", 19), integer("saturate", 0)}),
       {{"x", {f, {3}, {60000, 1.1, -3}}}, {"y", {DType::f8e5m2, {3}, {57344, 1, -3}}}}},
      {node("CastLike", {"x", "t"}),
       {{"x", {f, {3}, {-1.5, 0, 2.75}}}, {"t", {i, {1}, {9}}}, {"y", {i, {3}, {-1, 0, 2}}}}},
      {node("Transpose", {"x"}, {integers("perm", {1, 0})}),
       {{"x", {f, {2, 3}, {1, 2, 3, 4, 5, 6}}}, {"y", {f, {3, 2}, {1, 4, 2, 5, 3, 6}}}}},
      {node("Slice", {"x", "s", "e", "a", "t"}),
       {{"x", {f, {5}, {1, 2, 3, 4, 5}}},
        {"s", {i, {1}, {-1}}},
        {"e", {i, {1}, {-6}}},
        {"a", {i, {1}, {0}}},
        {"t", {i, {1}, {-2}}},
        {"y", {f, {3}, {5, 3, 1}}}}},
      {node("Conv", {"x", "w"}, {integers("pads", {1, 0}), integers("strides", {2})}),
       {{"x", {f, {1, 1, 4}, {1, 2, 3, 4}}},
        {"w", {f, {1, 1, 2}, {10, 1}}},
        {"y", {f, {1, 1, 2}, {1, 23}}}}},
      {node("MaxPool", {"x"}, {integers("kernel_shape", {2})}),
       {{"x", {f, {1, 1, 3}, {1, 3, 2}}}, {"y", {f, {1, 1, 2}, {3, 3}}}}},
      // Numbered down the columns of the second channel.
      {with_outputs(
           node("MaxPool", {"x"}, {integers("kernel_shape", {2, 2}), integer("storage_order", 1)}),
           {"y", "places"}),
       {{"x", {f, {1, 2, 2, 3}, {1, 2, 3, 4, 9, 6, 7, 8, 12, 11, 10, 5}}},
        {"y", {f, {1, 2, 1, 2}, {9, 9, 11, 12}}},
        {"places", {i, {1, 2, 1, 2}, {3, 3, 7, 10}}}}},
      // The last window ends behind the padding.
      {node("AveragePool", {"x"},
            {integers("kernel_shape", {2}), integers("strides", {2}), integer("ceil_mode", 1)}),
       {{"x", {f, {1, 1, 3}, {1, 3, 2}}}, {"y", {f, {1, 1, 2}, {2, 2}}}}},
      {node("LpPool", {"x"}, {integers("kernel_shape", {2}), integers("pads", {1, 0})}),
       {{"x", {f, {1, 1, 3}, {-3, 4, 0}}}, {"y", {f, {1, 1, 3}, {3, 5, 4}}}}},
      {node("ReduceMean", {"x", "a"}),
       {{"x", {f, {2, 2}, {1, 2, 3, 4}}}, {"a", {i, {1}, {0}}}, {"y", {f, {1, 2}, {2, 3}}}}},
      {node("Gather", {"x", "i"}),
       {{"x", {f, {3}, {7, 8, 9}}}, {"i", {i, {2}, {-1, 0}}}, {"y", {f, {2}, {9, 7}}}}},
      {node("MatMul", {"a", "b"}),
       {{"a", {f, {1, 2}, {1, 2}}}, {"b", {f, {2, 2}, {1, 2, 3, 4}}}, {"y", {f, {1, 2}, {7, 10}}}}},
      // A corner lies where a length of 2.4 ends, though 2 are left.
      {node("Resize", {"x", "", "s"},
            {text("mode", "linear"), text("coordinate_transformation_mode", "align_corners")}),
       {{"x", {f, {4}, {1, 2, 3, 4}}}, {"s", {f, {1}, {0.6}}}, {"y", {f, {2}, {1, 1 + 3 / 1.4}}}}},
      // A scale and a zero point for each row, and for each column.
      {node("QLinearMatMul", {"a", "as", "az", "b", "bs", "bz", "ys", "yz"}),
       {{"a", {u8, {2, 2}, {11, 12, 13, 14}}},
        {"as", {f, {2}, {0.5, 1}}},
        {"az", {u8, {2}, {10, 12}}},
        {"b", {u8, {2, 2}, {1, 6, 3, 4}}},
        {"bs", {f, {2}, {1, 4}}},
        {"bz", {u8, {2}, {0, 2}}},
        {"ys", {f, {}, {0.5}}},
        {"yz", {u8, {}, {100}}},
        {"y", {u8, {2, 2}, {107, 132, 114, 164}}}}},
      {node("QLinearConv", {"x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"}),
       {{"x", {u8, {1, 1, 2}, {12, 11}}},
        {"xs", {f, {}, {0.5}}},
        {"xz", {u8, {}, {10}}},
        {"w", {i8, {2, 1, 1}, {3, -5}}},
        {"ws", {f, {2}, {2, 1}}},
        {"wz", {i8, {2}, {0, 0}}},
        {"ys", {f, {}, {0.5}}},
        {"yz", {u8, {}, {20}}},
        {"b", {DType::i32, {2}, {1, 3}}},
        {"y", {u8, {1, 2, 2}, {34, 28, 13, 18}}}}},
      {node("MatMulInteger", {"a", "b", "az", "bz"}),
       {{"a", {u8, {1, 2}, {3, 4}}},
        {"b", {u8, {2, 2}, {1, 2, 3, 4}}},
        {"az", {u8, {}, {2}}},
        {"bz", {u8, {2}, {0, 1}}},
        {"y", {DType::i32, {1, 2}, {7, 7}}}}},
      {node("ConvInteger", {"x", "w", "xz"}, {integers("pads", {1, 0})}),
       {{"x", {u8, {1, 1, 2}, {5, 7}}},
        {"w", {u8, {1, 1, 2}, {2, 1}}},
        {"xz", {u8, {}, {4}}},
        {"y", {DType::i32, {1, 1, 2}, {1, 5}}}}},
      {with_outputs(node("DynamicQuantizeLinear", {"x"}), {"y", "scale", "zero"}),
       {{"x", {f, {3}, {-51, 0, 204}}},
        {"y", {u8, {3}, {0, 51, 255}}},
        {"scale", {f, {}, {1}}},
        {"zero", {u8, {}, {51}}}}},
      {node("Flatten", {"x"}),
       {{"x", {f, {2, 1, 3}, {1, 2, 3, 4, 5, 6}}}, {"y", {f, {2, 3}, {1, 2, 3, 4, 5, 6}}}}},
      {with_outputs(node("Unique", {"x"}), {"y", "firsts", "groups", "counts"}),
       {{"x", {f, {4}, {3, 1, 3, 2}}},
        {"y", {f, {3}, {1, 2, 3}}},
        {"firsts", {i, {3}, {1, 3, 0}}},
        {"groups", {i, {4}, {2, 0, 2, 1}}},
        {"counts", {i, {3}, {1, 1, 2}}}}},
      {with_outputs(node("Unique", {"x"}, {integer("axis", 1), integer("sorted", 0)}),
                    {"y", "firsts", "groups", "counts"}),
       {{"x", {f, {2, 3}, {7, 2, 7, 4, 5, 4}}},
        {"y", {f, {2, 2}, {7, 2, 4, 5}}},
        {"firsts", {i, {2}, {0, 1}}},
        {"groups", {i, {3}, {0, 1, 0}}},
        {"counts", {i, {2}, {2, 1}}}}},
      {scan_of_two(),
       {{"s", {f, {2}, {100, 200}}},
        {"x", {f, {2, 2}, {1, 2, 4, 5}}},
        {"z", {f, {2, 2}, {10, 20, 30, 40}}},
        {"last", {f, {2}, {103, 209}}},
        {"y", {f, {2, 2}, {73, 92, 169, 185}}}}},
  };
}

// Single elements, slices and their order.
std::vector<Example> examples_of_lines() {
  const DType f = DType::f32, i = DType::i64, u8 = DType::u8, i8 = DType::i8;
  return {
      {node("BitwiseNot", {"x"}), {{"x", {u8, {2}, {0, 200}}}, {"y", {u8, {2}, {255, 55}}}}},
      {node("BitwiseXor", {"a", "b"}),
       {{"a", {i8, {2}, {6, -1}}}, {"b", {i8, {1}, {3}}}, {"y", {i8, {2}, {5, -4}}}}},
      {node("BitShift", {"a", "b"}, {text("direction", "LEFT")}),
       {{"a", {u8, {2}, {3, 129}}}, {"b", {u8, {2}, {2, 1}}}, {"y", {u8, {2}, {12, 2}}}}},
      {node("Hardmax", {"x"}, {integer("axis", 0)}),
       {{"x", {f, {2, 2}, {1, 5, 1, 6}}}, {"y", {f, {2, 2}, {1, 0, 0, 1}}}}},
      {node("CumProd", {"x", "a"}, {integer("reverse", 1), integer("exclusive", 1)}),
       {{"x", {f, {3}, {2, 3, 4}}}, {"a", {i, {}, {0}}}, {"y", {f, {3}, {12, 4, 1}}}}},
      {node("LpNormalization", {"x"}),
       {{"x", {f, {1, 2}, {3, -4}}}, {"y", {f, {1, 2}, {0.6, -0.8}}}}},
      {node("GlobalLpPool", {"x"}), {{"x", {f, {1, 1, 2}, {3, -4}}}, {"y", {f, {1, 1, 1}, {5}}}}},
      {node("MeanVarianceNormalization", {"x"}, {integers("axes", {1})}),
       {{"x", {f, {1, 2}, {1, 3}}}, {"y", {f, {1, 2}, {-1, 1}}}}},
      {node("RMSNormalization", {"x", "s"}, {real("epsilon", 0)}),
       {{"x", {f, {1, 2}, {7, -1}}}, {"s", {f, {2}, {5, 10}}}, {"y", {f, {1, 2}, {7, -2}}}}},
      {node("ReverseSequence", {"x", "l"}),
       {{"x", {f, {3, 2}, {1, 2, 3, 4, 5, 6}}},
        {"l", {i, {2}, {2, 3}}},
        {"y", {f, {3, 2}, {3, 6, 1, 4, 5, 2}}}}},
      // Between four elements, on one, and half beyond the left.
      {node("GridSample", {"x", "g"}),
       {{"x", {f, {1, 1, 2, 2}, {1, 2, 3, 4}}},
        {"g", {f, {1, 1, 3, 2}, {0, 0, 0.5, -0.5, -1, -0.5}}},
        {"y", {f, {1, 1, 1, 3}, {2.5, 2, 0.5}}}}},
      {node("GridSample", {"x", "g"},
            {integer("align_corners", 1), text("padding_mode", "reflection")}),
       {{"x", {f, {1, 1, 1, 3}, {1, 2, 4}}},
        {"g", {f, {1, 1, 2, 2}, {1.5, 0, -1, 0}}},
        {"y", {f, {1, 1, 1, 2}, {3, 1}}}}},
      {node("HannWindow", {"n"}), {{"n", {i, {}, {4}}}, {"y", {f, {4}, {0, 0.5, 1, 0.5}}}}},
      {node("BlackmanWindow", {"n"}, {integer("periodic", 0)}),
       {{"n", {i, {}, {3}}}, {"y", {f, {3}, {0, 1, 0}}}}},
      {node("Det", {"x"}), {{"x", {f, {2, 2}, {0, 2, 3, 4}}}, {"y", {f, {}, {-6}}}}},
      {node("CenterCropPad", {"x", "s"}),
       {{"x", {f, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}}},
        {"s", {i, {2}, {3, 1}}},
        {"y", {f, {3, 1}, {2, 6, 0}}}}},
      // The second box overlaps the first by half, the third is disjoint.
      {node("NonMaxSuppression", {"b", "s", "m", "t"}),
       {{"b", {f, {1, 3, 4}, {0, 0, 1, 1, 1, 0, 0, 0.5, 2, 2, 3, 3}}},
        {"s", {f, {1, 1, 3}, {3, 2, 4}}},
        {"m", {i, {}, {3}}},
        {"t", {f, {}, {0.4}}},
        {"y", {i, {2, 3}, {0, 0, 2, 0, 0, 0}}}}},
      // The second class is ignored.
      {node("SoftmaxCrossEntropyLoss", {"x", "t"}, {integer("ignore_index", 1)}),
       {{"x", {f, {3, 2}, {0, 0, 7, 1, 2, 2}}},
        {"t", {i, {3}, {0, 1, 0}}},
        {"y", {f, {}, {std::log(2)}}}}},
      {node("NegativeLogLikelihoodLoss", {"x", "t", "w"}, {text("reduction", "none")}),
       {{"x", {f, {1, 2, 2}, {1, 2, 3, 4}}},
        {"t", {i, {1, 2}, {0, 1}}},
        {"w", {f, {2}, {10, 100}}},
        {"y", {f, {1, 2}, {-10, -400}}}}},
      // The first query sees one key of the past and its own.
      {with_outputs(node("Attention", {"q", "k", "v", "", "pk", "pv"}, {integer("is_causal", 1)}),
                    {"y", "keys", "values"}),
       {{"q", {f, {1, 1, 2, 1}, {0, 0}}},
        {"k", {f, {1, 1, 2, 1}, {1, 1}}},
        {"v", {f, {1, 1, 2, 1}, {3, 8}}},
        {"pk", {f, {1, 1, 1, 1}, {5}}},
        {"pv", {f, {1, 1, 1, 1}, {1}}},
        {"y", {f, {1, 1, 2, 1}, {2, 4}}},
        {"keys", {f, {1, 1, 3, 1}, {5, 1, 1}}},
        {"values", {f, {1, 1, 3, 1}, {1, 3, 8}}}}},
      {node("ReduceSum", {"x"}, {integer("noop_with_empty_axes", 1)}),
       {{"x", {f, {2}, {1, 2}}}, {"y", {f, {2}, {1, 2}}}}},
  };
}

std::vector<Example> examples_of_other_domains() {
  const DType f = DType::f32, i = DType::i64;
  const std::string_view ml = "ai.onnx.ml", contrib = "com.microsoft";
  return {
      {of_domain(node("Scaler", {"x"}, {reals("offset", {1, 2}), reals("scale", {10})}), ml),
       {{"x", {f, {1, 2}, {3, 5}}}, {"y", {f, {1, 2}, {20, 30}}}}},
      {of_domain(node("Normalizer", {"x"}, {text("norm", "L1")}), ml),
       {{"x", {f, {1, 2}, {3, -5}}}, {"y", {f, {1, 2}, {0.375, -0.625}}}}},
      {of_domain(node("Binarizer", {"x"}, {real("threshold", 2)}), ml),
       {{"x", {f, {3}, {1, 2, 3}}}, {"y", {f, {3}, {0, 0, 1}}}}},
      {of_domain(node("Imputer", {"x"},
                      {reals("imputed_value_floats", {8, 9}), real("replaced_value_float", -1)}),
                 ml),
       {{"x", {f, {1, 2}, {3, -1}}}, {"y", {f, {1, 2}, {3, 9}}}}},
      {of_domain(node("ArrayFeatureExtractor", {"x", "c"}), ml),
       {{"x", {f, {2, 3}, {1, 2, 3, 4, 5, 6}}}, {"c", {i, {1}, {2}}}, {"y", {f, {2, 1}, {3, 6}}}}},
      {of_domain(node("LabelEncoder", {"x"},
                      {integers("keys_int64s", {4, 7}), integers("values_int64s", {40, 70})}),
                 ml),
       {{"x", {i, {3}, {7, 4, 5}}}, {"y", {i, {3}, {70, 40, -1}}}}},
      {of_domain(node("OneHotEncoder", {"x"}, {integers("cats_int64s", {4, 7})}), ml),
       {{"x", {i, {2}, {7, 5}}}, {"y", {f, {2, 2}, {0, 1, 0, 0}}}}},
      {of_domain(node("LinearRegressor", {"x"},
                      {reals("coefficients", {1, 2, 3, 4}), reals("intercepts", {10, 20}),
                       integer("targets", 2)}),
                 ml),
       {{"x", {f, {1, 2}, {1, 10}}}, {"y", {f, {1, 2}, {31, 63}}}}},
      {with_outputs(of_domain(node("LinearClassifier", {"x"},
                                   {reals("coefficients", {1, 2}), reals("intercepts", {0.5}),
                                    integers("classlabels_ints", {3, 8})}),
                              ml),
                    {"y"}),
       {{"x", {f, {2, 2}, {1, -1, 1, 0}}}, {"y", {i, {2}, {3, 8}}}}},
      {of_domain(
           node("TreeEnsembleRegressor", {"x"},
                {integers("nodes_treeids", {0, 0, 0}), integers("nodes_nodeids", {0, 1, 2}),
                 integers("nodes_featureids", {1, 0, 0}),
                 texts("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF"}),
                 reals("nodes_values", {3, 0, 0}), integers("nodes_truenodeids", {1, 0, 0}),
                 integers("nodes_falsenodeids", {2, 0, 0}), integers("target_treeids", {0, 0}),
                 integers("target_nodeids", {1, 2}), integers("target_ids", {0, 0}),
                 reals("target_weights", {10, 20}), integer("n_targets", 1)}),
           ml),
       {{"x", {f, {2, 2}, {9, 3, 9, 4}}}, {"y", {f, {2, 1}, {10, 20}}}}},
      {of_domain(node("QuickGelu", {"x"}, {real("alpha", 0)}), contrib),
       {{"x", {f, {2}, {3, -4}}}, {"y", {f, {2}, {1.5, -2}}}}},
      {of_domain(node("FusedMatMul", {"a", "b"}, {integer("transA", 1), real("alpha", 2)}),
                 contrib),
       {{"a", {f, {2, 1}, {1, 2}}}, {"b", {f, {2, 1}, {3, 4}}}, {"y", {f, {1, 1}, {22}}}}},
      {of_domain(node("MatMulNBits", {"x", "b", "s"},
                      {integer("K", 4), integer("N", 1), integer("block_size", 2)}),
                 contrib),
       {{"x", {f, {1, 4}, {1, 2, 3, 4}}},
        {"b", {DType::u8, {1, 2, 1}, {9 + 16 * 7, 10 + 16 * 8}}},
        {"s", {f, {2}, {10, 100}}},
        {"y", {f, {1, 1}, {10 - 20 + 600}}}}},
      {of_domain(node("BiasSoftmax", {"x", "b"}), contrib),
       {{"x", {f, {1, 2}, {1, 2}}}, {"b", {f, {2}, {2, 1}}}, {"y", {f, {1, 2}, {0.5, 0.5}}}}},
      {of_domain(node("FeatureVectorizer", {"a", "b"}), ml),
       {{"a", {f, {2, 1}, {1, 2}}},
        {"b", {f, {2, 2}, {3, 4, 5, 6}}},
        {"y", {f, {2, 3}, {1, 3, 4, 2, 5, 6}}}}},
      {of_domain(node("ExpandDims", {"x", "a"}), contrib),
       {{"x", {f, {2}, {3, 4}}}, {"a", {i, {}, {-1}}}, {"y", {f, {2, 1}, {3, 4}}}}},
      {of_domain(node("SkipLayerNormalization", {"x", "z", "s", "b"}, {real("epsilon", 0)}),
                 contrib),
       {{"x", {f, {1, 2}, {1, 2}}},
        {"z", {f, {1, 2}, {0, 1}}},
        {"s", {f, {2}, {10, 100}}},
        {"b", {f, {2}, {1, 2}}},
        {"y", {f, {1, 2}, {-9, 102}}}}},
  };
}

// Operators with all their options.
std::vector<Example> examples_with_options() {
  const DType f = DType::f32, i = DType::i64;
  const auto texts_of = [](std::vector<std::string_view> list) {
    std::vector<double> out;
    for (std::string_view t : list) out.push_back(static_cast<double>(text_number(t)));
    return onnx::Numbers{DType::text, {static_cast<std::int64_t>(out.size())}, out};
  };
  return {
      // Windows at the ends see padding only; without ceil_mode they count.
      {node("Conv", {"x", "w", "b"}, {integers("pads", {1, 1})}),
       {{"x", {f, {1, 1, 2}, {3, 4}}},
        {"w", {f, {1, 1, 1}, {10}}},
        {"b", {f, {1}, {1}}},
        {"y", {f, {1, 1, 4}, {1, 31, 41, 1}}}}},
      // The last window ends behind the padding: that part does not count.
      {node("AveragePool", {"x"},
            {integers("kernel_shape", {3}), integers("strides", {2}), integers("pads", {1, 1}),
             integer("ceil_mode", 1), integer("count_include_pad", 1)}),
       {{"x", {f, {1, 1, 4}, {3, 6, 9, 12}}}, {"y", {f, {1, 1, 3}, {3, 9, 6}}}}},
      {node("ConvTranspose", {"x", "w"},
            {integers("strides", {2}), text("auto_pad", "SAME_UPPER")}),
       {{"x", {f, {1, 1, 2}, {1, 2}}},
        {"w", {f, {1, 1, 3}, {1, 10, 100}}},
        {"y", {f, {1, 1, 4}, {1, 10, 102, 20}}}}},
      // To half the size the filter is twice as wide.
      {node("Resize", {"x", "", "s"}, {text("mode", "linear"), integer("antialias", 1)}),
       {{"x", {f, {4}, {8, 16, 32, 64}}}, {"s", {f, {1}, {0.5}}}, {"y", {f, {2}, {14, 46}}}}},
      {node("Resize", {"x", "r", "", "n"},
            {text("mode", "linear"), text("coordinate_transformation_mode", "tf_crop_and_resize"),
             real("extrapolation_value", -5)}),
       {{"x", {f, {3}, {1, 2, 4}}},
        {"r", {f, {2}, {0.25, 1.25}}},
        {"n", {i, {1}, {3}}},
        {"y", {f, {3}, {1.5, 3, -5}}}}},
      {node("Upsample", {"x", "s"}),
       {{"x", {f, {2}, {1, 2}}}, {"s", {f, {1}, {2}}}, {"y", {f, {4}, {1, 1, 2, 2}}}}},
      // The cell is seen by the gates. All sums are zero but for that.
      {with_outputs(
           node("LSTM", {"x", "w", "r", "", "", "", "c", "p"}, {integer("hidden_size", 1)}),
           {"y", "h", "state"}),
       {{"x", {f, {1, 1, 1}, {0}}},
        {"w", {f, {1, 4, 1}, {1, 1, 1, 1}}},
        {"r", {f, {1, 4, 1}, {1, 1, 1, 1}}},
        {"c", {f, {1, 1, 1}, {2}}},
        {"p", {f, {1, 3}, {7, std::log(3), std::log(3) / 2}}},
        {"y", {f, {1, 1, 1, 1}, {std::tanh(1.5) * sigmoid_of(1.5 * std::log(3))}}},
        {"h", {f, {1, 1, 1}, {std::tanh(1.5) * sigmoid_of(1.5 * std::log(3))}}},
        {"state", {f, {1, 1, 1}, {1.5}}}}},
      // Of the second sequence only the first step counts; backwards, clipped.
      {with_outputs(node("RNN", {"x", "w", "r", "", "n"},
                         {integer("hidden_size", 1), text("direction", "reverse"),
                          texts("activations", {"Affine"}), reals("activation_alpha", {2}),
                          reals("activation_beta", {1}), real("clip", 3)}),
                    {"y", "h"}),
       {{"x", {f, {2, 2, 1}, {1, 2, 4, 9}}},
        {"w", {f, {1, 1, 1}, {1}}},
        {"r", {f, {1, 1, 1}, {0}}},
        {"n", {DType::i32, {2}, {2, 1}}},
        {"y", {f, {2, 1, 2, 1}, {3, 5, 7, 0}}},
        {"h", {f, {1, 2, 1}, {3, 5}}}}},
      {node("QuantizeLinear", {"x", "s", "z"}, {integer("axis", 0), integer("block_size", 2)}),
       {{"x", {f, {4}, {1, -3, 1e6, 2.5}}},
        {"s", {f, {2}, {0.5, 1}}},
        {"z", {DType::i16, {2}, {0, 1}}},
        {"y", {DType::i16, {4}, {2, -6, 32767, 3}}}}},
      {node("DequantizeLinear", {"x", "s", "z"}),
       {{"x", {DType::u16, {2}, {60000, 5}}},
        {"s", {f, {}, {0.5}}},
        {"z", {DType::u16, {}, {4}}},
        {"y", {f, {2}, {29998, 0.5}}}}},
      {node("Cast", {"x"}, {integer("to", 5)}),
       {{"x", {DType::i32, {2}, {65535, -7}}}, {"y", {DType::i16, {2}, {-1, -7}}}}},
      {node("StringConcat", {"a", "b"}),
       {{"a", texts_of({"x", "yz"})}, {"b", texts_of({"1"})}, {"y", texts_of({"x1", "yz1"})}}},
      {node("RegexFullMatch", {"x"}, {text("pattern", "a+b?")}),
       {{"x", texts_of({"aab", "ba"})}, {"y", {DType::b1, {2}, {1, 0}}}}},
      {node("StringNormalizer", {"x"},
            {text("case_change_action", "UPPER"), texts("stopwords", {"no"})}),
       {{"x", texts_of({"No", "yes"})}, {"y", texts_of({"YES"})}}},
      {node("Col2Im", {"x", "n", "k"}),
       {{"x", {f, {1, 2, 2}, {1, 2, 3, 4}}},
        {"n", {i, {2}, {1, 3}}},
        {"k", {i, {2}, {1, 2}}},
        {"y", {f, {1, 1, 1, 3}, {1, 5, 4}}}}},
      {node("RoiAlign", {"x", "r", "b"}, {integer("sampling_ratio", 1)}),
       {{"x", {f, {1, 1, 2, 2}, {1, 2, 3, 4}}},
        {"r", {f, {1, 4}, {0.5, 0.5, 1.5, 1.5}}},
        {"b", {i, {1}, {0}}},
        {"y", {f, {1, 1, 1, 1}, {2.5}}}}},
      {node("AffineGrid", {"t", "n"}, {integer("align_corners", 1)}),
       {{"t", {f, {1, 2, 3}, {2, 0, 1, 0, 3, 0}}},
        {"n", {i, {4}, {1, 1, 2, 2}}},
        {"y", {f, {1, 2, 2, 2}, {-1, -3, 3, -3, -1, 3, 3, 3}}}}},
      {with_outputs(node("BatchNormalization", {"x", "s", "b", "m", "v"},
                         {integer("training_mode", 1), real("momentum", 0.5), real("epsilon", 0)}),
                    {"y", "mean", "variance"}),
       {{"x", {f, {2, 1}, {1, 5}}},
        {"s", {f, {1}, {10}}},
        {"b", {f, {1}, {1}}},
        {"m", {f, {1}, {1}}},
        {"v", {f, {1}, {2}}},
        {"y", {f, {2, 1}, {-9, 11}}},
        {"mean", {f, {1}, {2}}},
        {"variance", {f, {1}, {3}}}}},
      {of_domain(node("LabelEncoder", {"x"},
                      {texts("keys_strings", {"a", "b"}), integers("values_int64s", {3, 4})}),
                 "ai.onnx.ml"),
       {{"x", texts_of({"b", "c"})}, {"y", {i, {2}, {4, -1}}}}},
  };
}

std::vector<Example> all_examples() {
  std::vector<Example> out = examples();
  for (const auto& more :
       {examples_of_lines(), examples_of_other_domains(), examples_with_options()})
    out.insert(out.end(), more.begin(), more.end());
  return out;
}

TEST(SecondReading, NoticesAResultThatIsWrong) {
  for (const Example& e : all_examples()) {
    const onnx::ReadingCheck right = check_node(e.node, e.values);
    EXPECT_EQ(right.judged.size(), 1) << e.node.op;
    EXPECT_EQ(right.wrong, "") << e.node.op;
    for (std::string_view y : e.node.outputs) {
      for (std::size_t i = 0; i < e.values.at(y).values.size(); ++i) {
        NodeValues wrong = e.values;
        wrong.at(y).values[i] += 1;
        EXPECT_NE(check_node(e.node, wrong).wrong, "")
            << e.node.op << " element " << i << " of " << y;
      }
      NodeValues reshaped = e.values;
      reshaped.at(y).dims.push_back(1);
      EXPECT_NE(check_node(e.node, reshaped).wrong, "") << e.node.op << " " << y;
    }
  }
}

TEST(SecondReading, NoticesALostAxisOrDirectionOfScan) {
  const onnx::Node scan = scan_of_two();
  for (const Example& e : examples()) {
    if (e.node.op != "Scan") continue;
    for (std::size_t i = 2; i < scan.attributes.size(); ++i) {
      onnx::Node lost = scan;
      lost.attributes.erase(lost.attributes.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_NE(check_node(lost, e.values).wrong, "") << scan.attributes[i].name;
    }
  }
}

}  // namespace
}  // namespace hone::test
