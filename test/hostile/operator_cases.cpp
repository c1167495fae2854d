// Single nodes with wrong attributes or operands. Each is refused when it is read, or computes
// correctly.
#include <variant>

#include "test/hostile/hostile.h"

namespace hone::hostile {

namespace {

using Ints = std::vector<std::int64_t>;

// An input of a dtype and sizes, an integer constant, or nothing (an omitted operand).
struct Operand {
  enum class Kind : std::uint8_t { input, ints, none };
  Kind kind = Kind::none;
  DType dtype = DType::f32;
  std::vector<std::string> sizes = {};
  Ints numbers = {};
};

Operand in(std::vector<std::string> sizes, DType dtype = DType::f32) {
  return {Operand::Kind::input, dtype, std::move(sizes)};
}
Operand ints(Ints numbers) { return {Operand::Kind::ints, DType::i64, {}, std::move(numbers)}; }

using Setting = std::pair<const char*, std::variant<std::int64_t, Ints, float, std::string>>;

void set(onnx_pb::Node& n, const Setting& s) {
  if (auto* i = std::get_if<std::int64_t>(&s.second)) set_int(n, s.first, *i);
  if (auto* l = std::get_if<Ints>(&s.second)) set_ints(n, s.first, *l);
  if (auto* f = std::get_if<float>(&s.second)) set_real(n, s.first, *f);
  if (auto* t = std::get_if<std::string>(&s.second)) set_text(n, s.first, *t);
}

struct Lie {
  const char* name;
  const char* op;
  std::vector<Operand> operands;
  std::vector<Setting> settings;
  const char* expected;
  Open open = imported;
  std::int64_t opset = 21;
};

Case case_of(const Lie& lie) {
  return {lie.name,
          model(
              [lie](ModelBuilder& b) {
                std::vector<std::string> names;
                for (const Operand& o : lie.operands) {
                  std::string name = cat("x", names.size());
                  if (o.kind == Operand::Kind::input) b.input(name, o.dtype, o.sizes);
                  if (o.kind == Operand::Kind::ints) b.ints(name, o.numbers);
                  names.push_back(o.kind == Operand::Kind::none ? "" : name);
                }
                onnx_pb::Node& n = b.node(lie.op, names, {"y"});
                for (const Setting& s : lie.settings) set(n, s);
                b.output("y");
              },
              lie.opset),
          lie.open, lie.expected};
}

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();

std::vector<Lie> convolutions() {
  const Operand image = in({"1", "2", "4", "4"}), filter = in({"2", "2", "3", "3"});
  return {
      {"conv_stride_0", "Conv", {image, filter}, {{"strides", Ints{0, 1}}}, "refused: "},
      {"conv_stride_negative", "Conv", {image, filter}, {{"strides", Ints{-1, 1}}}, "refused: "},
      {"conv_stride_most", "Conv", {image, filter}, {{"strides", Ints{most, most}}}, "read: "},
      {"conv_dilation_0", "Conv", {image, filter}, {{"dilations", Ints{0, 0}}}, "refused: "},
      {"conv_dilation_most",
       "Conv",
       {image, filter},
       {{"dilations", Ints{most, most}}},
       "refused: "},
      {"conv_group_0", "Conv", {image, filter}, {{"group", 0}}, "refused: "},
      {"conv_group_negative", "Conv", {image, filter}, {{"group", -2}}, "refused: "},
      {"conv_group_3", "Conv", {image, filter}, {{"group", 3}}, "refused: "},
      {"conv_group_most", "Conv", {image, filter}, {{"group", most}}, "refused: "},
      {"conv_pads_2_40",
       "Conv",
       {image, filter},
       {{"pads", Ints{big, big, big, big}}},
       "does not fit in 64 bits"},
      {"conv_pads_most",
       "Conv",
       {image, filter},
       {{"pads", Ints{most, most, most, most}}},
       "refused: "},
      {"conv_pads_negative",
       "Conv",
       {image, filter},
       {{"pads", Ints{-9, -9, -9, -9}}},
       "refused: "},
      {"conv_pads_too_few", "Conv", {image, filter}, {{"pads", Ints{1}}}, "refused: "},
      {"conv_kernel_larger", "Conv", {image, in({"2", "2", "9", "9"})}, {}, "refused: "},
      {"conv_kernel_0", "Conv", {image, in({"2", "2", "0", "3"})}, {}, "read: "},
      {"conv_kernel_shape_lies",
       "Conv",
       {image, filter},
       {{"kernel_shape", Ints{5, 5}}},
       "refused: "},
      {"conv_channels_differ", "Conv", {image, in({"2", "7", "3", "3"})}, {}, "refused: "},
      {"conv_rank_1", "Conv", {in({"4"}), in({"4"})}, {}, "refused: "},
      {"conv_auto_pad_unknown",
       "Conv",
       {image, filter},
       {{"auto_pad", std::string("MAYBE")}},
       "refused: "},
      {"conv_transpose_output_padding_most",
       "ConvTranspose",
       {image, filter},
       {{"output_padding", Ints{most, most}}},
       "refused: "},
      {"conv_transpose_stride_most",
       "ConvTranspose",
       {image, filter},
       {{"strides", Ints{most, most}}},
       "refused: "},
      {"pool_kernel_0", "MaxPool", {image}, {{"kernel_shape", Ints{0, 0}}}, "refused: "},
      {"pool_kernel_larger", "AveragePool", {image}, {{"kernel_shape", Ints{9, 9}}}, "refused: "},
      {"pool_kernel_most", "MaxPool", {image}, {{"kernel_shape", Ints{most, most}}}, "refused: "},
      {"pool_kernel_negative", "MaxPool", {image}, {{"kernel_shape", Ints{-1, 2}}}, "refused: "},
      {"pool_no_kernel", "MaxPool", {image}, {}, "refused: "},
      {"pool_stride_0",
       "AveragePool",
       {image},
       {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{0, 0}}},
       "refused: "},
      {"pool_huge_window",
       "MaxPool",
       {image},
       {{"kernel_shape", Ints{1 << 20, 1 << 20}},
        {"pads", Ints{1 << 20, 1 << 20, 1 << 20, 1 << 20}}},
       "expected at most 1099511627776"},
      {"lp_pool_p_0", "LpPool", {image}, {{"kernel_shape", Ints{2, 2}}, {"p", 0}}, "refused: "},
  };
}

std::vector<Lie> axes() {
  const Operand x = in({"2", "3"}), i = in({"2"}, DType::i64);
  return {
      {"softmax_axis_9", "Softmax", {x}, {{"axis", 9}}, "refused: "},
      {"softmax_axis_lowest", "Softmax", {x}, {{"axis", lowest}}, "refused: "},
      {"concat_axis_most", "Concat", {x, x}, {{"axis", most}}, "refused: "},
      {"concat_nothing", "Concat", {}, {{"axis", 0}}, "refused: "},
      {"transpose_twice_0", "Transpose", {x}, {{"perm", Ints{0, 0}}}, "refused: "},
      {"transpose_negative", "Transpose", {x}, {{"perm", Ints{-1, 0}}}, "read: "},
      {"transpose_2_40", "Transpose", {x}, {{"perm", Ints{big, 0}}}, "refused: "},
      {"transpose_too_long", "Transpose", {x}, {{"perm", Ints(100'000, 0)}}, "refused: "},
      {"squeeze_lowest", "Squeeze", {x, ints({lowest})}, {}, "refused: "},
      {"unsqueeze_1000000_times", "Unsqueeze", {x, ints(Ints(1'000'000, 0))}, {}, "refused: "},
      {"unsqueeze_most", "Unsqueeze", {x, ints({most})}, {}, "refused: "},
      {"reduce_axis_twice", "ReduceSum", {x, ints({0, 0})}, {}, "refused: "},
      {"reduce_axes_most", "ReduceMax", {x, ints({most, lowest})}, {}, "refused: "},
      {"cumsum_axis_lowest", "CumSum", {x, ints({lowest})}, {}, "refused: "},
      {"flatten_most", "Flatten", {x}, {{"axis", most}}, "refused: "},
      {"topk_negative", "TopK", {x, ints({-1})}, {}, "refused: "},
      {"topk_most", "TopK", {x, ints({most})}, {}, "refused: "},
      {"split_negative", "Split", {x, ints({-1, 4})}, {{"axis", 1}}, "refused: "},
      {"split_0_outputs", "Split", {x}, {{"num_outputs", 0}}, "refused: "},
      {"split_most_outputs", "Split", {x}, {{"num_outputs", most}}, "refused: "},
      {"split_sum_wraps", "Split", {x, ints({most, lowest + 1})}, {}, "refused: "},
      {"slice_step_0", "Slice", {x, ints({0}), ints({2}), ints({0}), ints({0})}, {}, "refused: "},
      {"slice_step_lowest",
       "Slice",
       {x, ints({most}), ints({lowest}), ints({0}), ints({lowest})},
       {},
       "read: "},
      {"slice_lists_differ", "Slice", {x, ints({0, 0}), ints({1})}, {}, "refused: "},
      {"slice_axis_twice", "Slice", {x, ints({0, 0}), ints({1, 1}), ints({0, 0})}, {}, "refused: "},
      {"gather_axis_9", "Gather", {x, i}, {{"axis", 9}}, "refused: "},
      {"gather_index_2_40", "Gather", {x, ints({big})}, {}, "refused: "},
      {"gather_index_lowest", "Gather", {x, ints({lowest})}, {}, "refused: "},
      {"gather_index_2_40_runs", "Gather", {x, ints({0, 1, big})}, {}, "refused: ", ran},
      {"gather_elements_2_40", "GatherElements", {x, ints({big, lowest})}, {}, "refused: ", ran},
      {"gather_nd_2_40", "GatherND", {x, ints({big})}, {}, "refused: ", ran},
      {"gather_nd_batch_dims_most",
       "GatherND",
       {x, i},
       {{"batch_dims", most}},
       "attribute 'batch_dims' is 9223372036854775807, expected 0 to 1"},
      {"scatter_nd_lowest", "ScatterND", {in({"3"}), ints({lowest}), in({})}, {}, "refused: ", ran},
      {"one_hot_depth_2_62",
       "OneHot",
       {i, ints({std::int64_t{1} << 62}), in({"2"})},
       {},
       "refused: "},
      {"one_hot_depth_negative", "OneHot", {i, ints({-4}), in({"2"})}, {}, "refused: "},
      {"reverse_sequence_axes_equal",
       "ReverseSequence",
       {x, i},
       {{"batch_axis", 0}, {"time_axis", 0}},
       "refused: "},
      {"einsum_broken", "Einsum", {x, x}, {{"equation", std::string("ij,jk->")}}, "refused: "},
      {"einsum_long", "Einsum", {x}, {{"equation", std::string(1'000'000, 'i')}}, "refused: "},
      {"einsum_ellipses", "Einsum", {x}, {{"equation", std::string("......->...")}}, "refused: "},
      {"depth_to_space_0",
       "DepthToSpace",
       {in({"1", "4", "2", "2"})},
       {{"blocksize", 0}},
       "refused: "},
      {"depth_to_space_most",
       "DepthToSpace",
       {in({"1", "4", "2", "2"})},
       {{"blocksize", most}},
       "refused: "},
      {"space_to_depth_2_32",
       "SpaceToDepth",
       {in({"1", "4", "2", "2"})},
       {{"blocksize", std::int64_t{1} << 32}},
       "refused: "},
      {"trilu_most", "Trilu", {x, ints({most})}, {}, "read: "},
      {"eye_like_lowest", "EyeLike", {x}, {{"k", lowest}}, "read: "},
  };
}

std::vector<Lie> numeric() {
  const Operand x = in({"2", "3"}), image = in({"1", "2", "4", "4"});
  return {
      {"cast_to_99", "Cast", {x}, {{"to", 99}}, "refused: "},
      {"cast_without_to", "Cast", {x}, {}, "refused: "},
      {"matmul_sizes_differ", "MatMul", {x, x}, {}, "refused: "},
      {"gemm_rank_1", "Gemm", {in({"3"}), x}, {}, "refused: "},
      {"add_sizes_differ", "Add", {x, in({"2", "4"})}, {}, "refused: "},
      {"add_types_differ", "Add", {x, in({"2", "3"}, DType::i32)}, {}, "refused: "},
      {"div_by_0", "Div", {ints({1, -1, 0}), ints({0, 0, 0})}, {}, "ran: i64[3]", ran},
      {"div_lowest_by_minus_1", "Div", {ints({lowest}), ints({-1})}, {}, "ran: i64[1]", ran},
      {"mod_by_0", "Mod", {ints({7}), ints({0})}, {}, "ran: i64[1]", ran},
      {"mod_lowest_by_minus_1", "Mod", {ints({lowest}), ints({-1})}, {}, "ran: i64[1] = 0", ran},
      {"div_by_0_by_reference",
       "Div",
       {ints({1, -1, 0}), ints({0, 0, 0})},
       {},
       "ran: i64[3]",
       interpreted},
      {"div_lowest_by_reference",
       "Div",
       {ints({lowest}), ints({-1})},
       {},
       "ran: i64[1]",
       interpreted},
      {"abs_lowest", "Abs", {ints({lowest})}, {}, "ran: i64[1]", ran},
      {"shift_by_200",
       "BitShift",
       {in({"2"}, DType::u8), in({"2"}, DType::u8)},
       {{"direction", std::string("AROUND")}},
       "refused: "},
      {"batch_norm_sizes_differ",
       "BatchNormalization",
       {image, in({"3"}), in({"3"}), in({"3"}), in({"3"})},
       {},
       "refused: "},
      {"group_norm_0",
       "GroupNormalization",
       {image, in({"2"}), in({"2"})},
       {{"num_groups", 0}},
       "refused: "},
      {"group_norm_most",
       "GroupNormalization",
       {image, in({"2"}), in({"2"})},
       {{"num_groups", most}},
       "refused: "},
      {"layer_norm_axis_9", "LayerNormalization", {x, in({"3"})}, {{"axis", 9}}, "refused: "},
      {"lrn_size_0", "LRN", {image}, {{"size", 0}}, "refused: "},
      {"lrn_size_most", "LRN", {image}, {{"size", most}}, "refused: "},
      {"lstm_hidden_lies",
       "LSTM",
       {in({"2", "1", "3"}), in({"1", "8", "3"}), in({"1", "8", "2"})},
       {{"hidden_size", 1000}},
       "refused: "},
      {"lstm_hidden_negative",
       "LSTM",
       {in({"2", "1", "3"}), in({"1", "8", "3"}), in({"1", "8", "2"})},
       {{"hidden_size", -2}},
       "refused: "},
      {"dropout_ratio_2", "Dropout", {x}, {{"ratio", 2.0F}}, "read: ", imported, 11},
      {"quantize_block_size_most",
       "QuantizeLinear",
       {x, in({"2", "1"})},
       {{"axis", 1}, {"block_size", most}},
       "refused: "},
      {"hann_window_negative", "HannWindow", {ints({-5})}, {}, "refused: "},
      {"dft_axis_9", "DFT", {in({"1", "4", "1"}), {}, ints({9})}, {}, "refused: "},
      {"random_shape_negative", "RandomNormal", {}, {{"shape", Ints{-1, 2}}}, "refused: "},
      {"attention_heads_0", "MultiHeadAttention", {x, x, x}, {{"num_heads", 0}}, "refused: "},
      {"roi_align_ratio_most",
       "RoiAlign",
       {image, in({"1", "4"}), in({"1"}, DType::i64)},
       {{"sampling_ratio", most}},
       "refused: "},
      {"grid_sample_rank_2", "GridSample", {x, x}, {}, "refused: "},
      {"col2im_block_0",
       "Col2Im",
       {in({"1", "4", "4"}), ints({4, 4}), ints({0, 0})},
       {},
       "refused: "},
      {"nms_shapes_wrong", "NonMaxSuppression", {x, x}, {}, "refused: "},
      {"scan_of_nothing", "Scan", {x}, {{"num_scan_inputs", 1}}, "refused: "},
      {"loop_without_body", "Loop", {ints({3}), {}}, {}, "refused: "},
  };
}

}  // namespace

Cases operator_cases() {
  Cases out;
  for (const std::vector<Lie>& table : {convolutions(), axes(), numeric()})
    for (const Lie& lie : table) out.push_back(case_of(lie));
  return out;
}

}  // namespace hone::hostile
