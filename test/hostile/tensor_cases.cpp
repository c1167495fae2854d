// Tensors whose sizes, types and contents do not agree, in models and in separate files.
#include "test/hostile/hostile.h"

namespace hone::hostile {

namespace {

constexpr std::int64_t most_i64 = std::numeric_limits<std::int64_t>::max();

// A model with one initializer.
Make initializer(std::function<void(onnx_pb::Tensor&)> fill) {
  return model([fill](ModelBuilder& b) {
    onnx_pb::Tensor* t = b.model.mutable_graph()->add_initializer();
    t->set_name("w");
    t->set_data_type(1);
    fill(*t);
    b.node("Identity", {"w"}, {"y"});
    b.output("y");
  });
}

Make of_dims(std::vector<std::int64_t> dims, std::size_t raw_bytes) {
  return initializer([=](onnx_pb::Tensor& t) {
    for (std::int64_t d : dims) t.add_dims(d);
    t.set_raw_data(std::string(raw_bytes, '\0'));
  });
}

Make npy(const std::string& header, std::size_t data, const std::string& version = {1, 0},
         std::int64_t length = -1) {
  const auto n =
      static_cast<std::uint64_t>(length < 0 ? static_cast<std::int64_t>(header.size()) : length);
  std::string out = "\x93NUMPY" + version;
  for (int i = 0; i < (version[0] == 1 ? 2 : 4); ++i) out += static_cast<char>(n >> 8 * i);
  return bytes(out + header + std::string(data, '\0'));
}

std::string npy_header(const std::string& shape, const std::string& type = "<f4",
                       const std::string& order = "False") {
  return cat("{'descr': '", type, "', 'fortran_order': ", order, ", 'shape': ", shape, ", }\n");
}

}  // namespace

Cases tensor_cases() {
  Cases out = {
      {"dim_negative", of_dims({-1}, 0), imported, "tensor 'w': size -1 is negative"},
      {"dim_lowest", of_dims({std::numeric_limits<std::int64_t>::min()}, 0), imported,
       "is negative"},
      {"dims_negative_twice", of_dims({-2, -2}, 16), imported, "size -2 is negative"},
      {"dims_wrap_elements", of_dims({std::int64_t{1} << 32, std::int64_t{1} << 32}, 0), imported,
       "does not fit in 64 bits"},
      {"dims_wrap_bytes", of_dims({std::int64_t{1} << 62}, 0), imported, "does not fit in 64 bits"},
      {"dims_wrap_to_4", of_dims({(std::int64_t{1} << 62) + 1, 4}, 16), imported,
       "does not fit in 64 bits"},
      {"dims_most", of_dims({most_i64, most_i64, most_i64}, 4), imported,
       "does not fit in 64 bits"},
      {"dims_huge_and_zero", of_dims({0, most_i64, 2}, 0), imported, "read: 1 variants"},
      {"dims_100000_ones", of_dims(std::vector<std::int64_t>(100'000, 1), 4), imported, "read: "},
      {"raw_too_short", of_dims({4}, 15), imported, "it has 15 bytes, expected 16"},
      {"raw_too_long", of_dims({4}, 17), imported, "it has 17 bytes, expected 16"},
      {"raw_missing", initializer([](onnx_pb::Tensor& t) { t.add_dims(4); }), imported,
       "it has 0 elements, expected 4"},
      {"raw_of_2_40", of_dims({std::int64_t{1} << 40}, 4), imported,
       "it has 4 bytes, expected 4398046511104"},
      {"type_0", initializer([](onnx_pb::Tensor& t) { t.set_data_type(0); }), imported,
       "are not supported"},
      {"type_99", initializer([](onnx_pb::Tensor& t) { t.set_data_type(99); }), imported,
       "elements of type type 99 are not supported"},
      {"type_negative", initializer([](onnx_pb::Tensor& t) { t.set_data_type(-5); }), imported,
       "elements of type type -5 are not supported"},
      {"field_of_other_type", initializer([](onnx_pb::Tensor& t) {
         t.add_dims(1);
         t.add_int64_data(5);
       }),
       imported, "its elements are not in the data field of type f32"},
      {"typed_too_many", initializer([](onnx_pb::Tensor& t) {
         t.add_dims(1);
         for (int i = 0; i < 9; ++i) t.add_float_data(1);
       }),
       imported, "it has 9 elements, expected 1"},
      {"segment", initializer([](onnx_pb::Tensor& t) { t.mutable_segment()->set_end(4); }),
       imported, "it is a segment of a tensor"},
      {"bools_are_not_0_or_1", model([](ModelBuilder& b) {
         onnx_pb::Tensor* t = b.model.mutable_graph()->add_initializer();
         t->set_name("c");
         t->set_data_type(9);
         t->set_raw_data("\x42");
         b.node("Not", {"c"}, {"y"});
         b.output("y");
       }),
       interpreted, "ran: bool[] = 0"},
      {"sparse_initializer", model([](ModelBuilder& b) {
         b.model.mutable_graph()->add_sparse_initializer()->mutable_values()->set_name("s");
       }),
       imported, "tensor 's': elements of type UNDEFINED are not supported"},
  };
  const auto add_npy = [&out](const char* name, Make make, const char* expected) {
    out.push_back({name, std::move(make), read_as_npy, expected, "x.npy"});
  };
  add_npy("npy_good", npy(npy_header("(2, 3)"), 24), "read: f32[2,3]");
  add_npy("npy_empty", bytes(""), "is not a .npy file");
  add_npy("npy_magic_only", bytes("\x93NUMPY"), "refused: ");
  add_npy("npy_version_9", npy(npy_header("(2,)"), 8, {9, 0}), "version is 9");
  add_npy("npy_header_past_end", npy(npy_header("(2,)"), 8, {1, 0}, 60'000), "is truncated");
  add_npy("npy_header_4_gib", npy(npy_header("(2,)"), 8, {2, 0}, 0xffffffff), "is truncated");
  add_npy("npy_object", npy(npy_header("(2,)", "|O"), 16), "refused: ");
  add_npy("npy_negative", npy(npy_header("(-2,)"), 8), "expected non-negative integers");
  add_npy("npy_overflow", npy(npy_header("(4611686018427387904, 4)"), 8),
          "does not fit in 64 bits");
  add_npy("npy_number_too_long", npy(npy_header("(99999999999999999999999,)"), 8),
          "expected non-negative integers");
  add_npy("npy_too_short", npy(npy_header("(3,)"), 8), "has 8 bytes of elements, expected 12");
  add_npy("npy_no_tuple", npy(npy_header("2"), 8), "shape is invalid, expected a tuple");
  add_npy("npy_open_tuple", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,", 8),
          "shape is invalid, expected a tuple");
  add_npy("npy_other_order", npy(npy_header("(2,)", "<f4", "Maybe"), 8),
          "fortran_order is invalid");
  add_npy("npy_code_in_header", npy("__import__('os').system('true')\n", 0), "is missing");
  add_npy("npy_65535_dims",
          npy(npy_header("(" +
                         [] {
                           std::string s;
                           for (int i = 0; i < 20'000; ++i) s += "1, ";
                           return s;
                         }() +
                         ")"),
              4),
          "read: ");
  const auto add_pb = [&out](const char* name, Make make, Open open, const char* expected) {
    out.push_back({name, std::move(make), open, expected, "x.pb"});
  };
  add_pb("pb_empty", bytes(""), read_as_pb, "refused: ");
  add_pb("pb_model", bytes(good_model()), read_as_pb, "refused: ");
  add_pb("pb_lies", bytes(number_field(1, 100) + number_field(2, 1) + bytes_field(9, "abcd")),
         read_as_pb, "it has 4 bytes, expected 400");
  add_pb("pb_external",
         bytes(number_field(1, 1) + number_field(2, 1) + number_field(14, 1) +
               bytes_field(13, bytes_field(1, "location") + bytes_field(2, "/etc/hostname"))),
         read_as_pb, "refused: ");
  add_pb("pb_sequence_nested", bytes([] {
           std::string inner;
           for (int i = 0; i < 3000; ++i) inner = bytes_field(4, inner);
           return inner;
         }),
         read_as_sequence, "read: 0 tensors");
  return out;
}

}  // namespace hone::hostile
