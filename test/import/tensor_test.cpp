#include "import/onnx/file/tensor.h"

#include <sys/stat.h>

#include <cmath>

#include "import/tensor_file.h"
#include "support.h"
#include "type/text.h"

namespace hone {
namespace {

using onnx_pb::Tensor;

Array through_pb(const Tensor& t) {
  TempDirectory dir;
  return read_tensor_pb(dir.write("t.pb", t.SerializeAsString()));
}

std::string failure(const Tensor& t) {
  try {
    through_pb(t);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

Tensor tensor(DType dtype, const std::vector<std::int64_t>& dims) {
  Tensor t;
  t.set_name("t");
  t.set_data_type(onnx::data_type_of(dtype));
  for (std::int64_t d : dims) t.add_dims(d);
  return t;
}

void expect_failure(const Tensor& t, const std::string& what) {
  EXPECT_NE(failure(t).find(what), std::string::npos) << failure(t);
  EXPECT_NE(failure(t).find("tensor 't'"), std::string::npos) << failure(t);
}

constexpr DType all_dtypes[] = {DType::b1,   DType::i8,  DType::i16, DType::i32, DType::i64,
                                DType::u8,   DType::u16, DType::u32, DType::u64, DType::f16,
                                DType::bf16, DType::f32, DType::f64};

// 0, 1, -2, 3, 4, -5, ...: includes negative numbers.
Array sample(DType dtype, std::vector<std::int64_t> dims) {
  Array a = Array::zeros(dtype, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_integer(i, i % 3 == 2 ? -i : i);
  return a;
}

TEST(TensorProto, EveryDtypeAsRawData) {
  for (DType dtype : all_dtypes) {
    Tensor t = tensor(dtype, {3, 5});
    Array a = sample(dtype, {3, 5});
    t.set_raw_data(a.bytes().data(), a.bytes().size());
    EXPECT_EQ(through_pb(t), a) << dtype;
  }
}

TEST(TensorProto, EveryDtypeInItsTypedField) {
  for (DType dtype : all_dtypes) {
    Tensor t = tensor(dtype, {7});
    Array a = sample(dtype, {7});
    for (int i = 0; i < 7; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, a.bytes().data() + i * byte_size(dtype),
                  static_cast<std::size_t>(byte_size(dtype)));
      if (dtype == DType::f32)
        t.add_float_data(static_cast<float>(a.real(i)));
      else if (dtype == DType::f64)
        t.add_double_data(a.real(i));
      else if (dtype == DType::i64)
        t.add_int64_data(a.integer(i));
      else if (dtype == DType::u32 || dtype == DType::u64)
        t.add_uint64_data(bits);
      else if (dtype == DType::f16 || dtype == DType::bf16)
        t.add_int32_data(static_cast<std::int32_t>(bits));
      else
        t.add_int32_data(static_cast<std::int32_t>(a.integer(i)));
    }
    EXPECT_EQ(through_pb(t), a) << dtype;
  }
}

TEST(TensorProto, TypedFieldsMayComeInPartsAndUnpacked) {
  Tensor first = tensor(DType::f32, {5}), second;
  first.add_float_data(1);
  first.add_float_data(2);
  second.add_float_data(3);
  std::string bytes = first.SerializeAsString() + second.SerializeAsString();
  for (float f : {4.f, 5.f}) {  // field 4, not packed
    bytes += static_cast<char>(4 << 3 | 5);
    bytes.append(reinterpret_cast<const char*>(&f), sizeof f);
  }
  TempDirectory dir;
  EXPECT_EQ(read_tensor_pb(dir.write("t.pb", bytes)), reals({5}, {1, 2, 3, 4, 5}));
}

TEST(TensorProto, BoolsAreNormal) {
  Tensor t = tensor(DType::b1, {4});
  t.set_raw_data("\0\1\2\xff", 4);
  Array a = through_pb(t);
  EXPECT_EQ(a.bytes()[2], std::byte{1});
  EXPECT_EQ(a.bytes()[3], std::byte{1});
  EXPECT_EQ(a.bytes()[0], std::byte{0});
}

TEST(TensorProto, ScalarsAndEmptyTensors) {
  Tensor scalar = tensor(DType::f32, {});
  scalar.add_float_data(2.5f);
  EXPECT_EQ(through_pb(scalar).real(0), 2.5);
  EXPECT_EQ(through_pb(tensor(DType::f32, {0, 3})).count(), 0);
  EXPECT_EQ(through_pb(tensor(DType::i64, {0})).count(), 0);
}

TEST(TensorProto, RefusesSizesThatDoNotFit) {
  Tensor t = tensor(DType::f32, {3});
  t.set_raw_data("12345678", 8);
  expect_failure(t, "it has 8 bytes, expected 12");
  Tensor typed = tensor(DType::f32, {3});
  typed.add_float_data(1);
  expect_failure(typed, "it has 1 element, expected 3");
  Tensor wrong = tensor(DType::f32, {1});
  wrong.add_int64_data(1);
  expect_failure(wrong, "not in the data field of type f32");
  expect_failure(tensor(DType::f32, {-1}), "size -1 is negative");
  expect_failure(tensor(DType::f32, {1ll << 31, 1ll << 31, 4}), "does not fit in 64 bits");
  expect_failure(tensor(DType::f32, {1ll << 62}), "does not fit in 64 bits");
  expect_failure(tensor(DType::f32, {1ll << 40}), "it has 0 elements");
}

TEST(TensorProto, RefusesWhatHasNoElements) {
  for (auto [number, name] : std::vector<std::pair<int, std::string>>{
           {0, "UNDEFINED"}, {14, "COMPLEX64"}, {99, "type 99"}, {-1, "type -1"}}) {
    Tensor t = tensor(DType::f32, {1});
    t.set_data_type(number);
    expect_failure(t, cat("elements of type ", name, " are not supported"));
  }
  Tensor segment = tensor(DType::f32, {1});
  segment.mutable_segment()->set_begin(0);
  expect_failure(segment, "a segment of a tensor");
}

TEST(TensorProto, SmallElementsArePacked) {
  Tensor t = tensor(DType::i4, {3});
  t.set_raw_data("\x7f\x08", 2);  // the low half first
  const Array four = through_pb(t);
  EXPECT_EQ(four.type(), Type(DType::i4, {3}));
  EXPECT_EQ(four.integer(0), -1);
  EXPECT_EQ(four.integer(1), 7);
  EXPECT_EQ(four.integer(2), -8);
  Tensor typed = tensor(DType::u2, {5});
  typed.add_int32_data(0xe4);
  typed.add_int32_data(2);
  const Array two = through_pb(typed);
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(two.integer(i), i);
  EXPECT_EQ(two.integer(4), 2);
  Tensor real = tensor(DType::f4e2m1, {2});
  real.set_raw_data("\xf1", 1);
  EXPECT_EQ(through_pb(real).real(0), 0.5);
  EXPECT_EQ(through_pb(real).real(1), -6);
  Tensor eight = tensor(DType::f8e5m2, {2});
  eight.add_int32_data(0x3c);
  eight.add_int32_data(0xc0);
  EXPECT_EQ(through_pb(eight).real(0), 1);
  EXPECT_EQ(through_pb(eight).real(1), -2);
  t.add_dims(2);  // six elements need three bytes
  expect_failure(t, "it has 2 bytes, expected 3");
  typed.add_int32_data(0);
  expect_failure(typed, "it has 3 elements, expected 2");
  expect_failure(tensor(DType::u2, {1ll << 62}), "it has 0 elements");
}

// ==== weights are views

TEST(Weights, LargeRawAndPackedDataAreNotCopied) {
  TempDirectory dir;
  for (bool raw : {true, false}) {
    Tensor t = tensor(DType::f32, {2000});
    std::vector<float> values(2000, 1.5f);
    if (raw)
      t.set_raw_data(values.data(), values.size() * sizeof(float));
    else
      t.mutable_float_data()->Add(values.begin(), values.end());
    auto file = MappedFile::open(dir.write(cat("t", raw), t.SerializeAsString()));
    onnx::TensorFiles files(file);
    onnx::Tensor read = onnx::parse_tensor(file->bytes(), "t");
    Array a = files.array(read);
    EXPECT_GE(a.bytes().data(), file->bytes().data());
    EXPECT_LE(a.bytes().data() + a.bytes().size(), file->bytes().data() + file->bytes().size());
    EXPECT_EQ(a.real(1999), 1.5);
  }
}

TEST(Weights, SmallMisalignedTensorsAreAligned) {
  TempDirectory dir;
  for (int shift = 0; shift < 8; ++shift) {
    Tensor t = tensor(DType::f64, {4});
    t.set_name(std::string(static_cast<std::size_t>(shift), 'n'));
    std::vector<double> values = {1, 2, 3, 4};
    t.set_raw_data(values.data(), 32);
    Array a = read_tensor_pb(dir.write(cat("t", shift), t.SerializeAsString()));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.bytes().data()) % 8, 0u);
    EXPECT_EQ(a.real(3), 4);
  }
}

TEST(Weights, DecodedTensorsAreOneStorage) {
  TempDirectory dir;
  Tensor t = tensor(DType::i64, {1000});
  for (int i = 0; i < 1000; ++i) t.add_int64_data(i);
  auto file = MappedFile::open(dir.write("t", t.SerializeAsString()));
  onnx::TensorFiles files(file);
  onnx::Tensor read = onnx::parse_tensor(file->bytes(), "t");
  EXPECT_EQ(files.array(read).storage(), files.array(read).storage());
}

// ==== external data

class External : public testing::Test {
 protected:
  External() {
    std::vector<float> values(100);
    for (int i = 0; i < 100; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i);
    dir.write("w.bin", {reinterpret_cast<const char*>(values.data()), 400});
  }
  static Tensor located(const std::string& location, const std::string& offset = "",
                        const std::string& length = "") {
    Tensor t = tensor(DType::f32, {10});
    t.set_data_location(1);
    auto add = [&](const std::string& key, const std::string& value) {
      onnx_pb::Pair* p = t.add_external_data();
      p->set_key(key);
      p->set_value(value);
    };
    add("location", location);
    if (!offset.empty()) add("offset", offset);
    if (!length.empty()) add("length", length);
    return t;
  }
  Array read(const Tensor& t) { return read_tensor_pb(dir.write("t.pb", t.SerializeAsString())); }
  void expect_refused(const Tensor& t, const std::string& what) {
    try {
      read(t);
      ADD_FAILURE() << "no error; expected " << what;
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("tensor 't'"), std::string::npos) << e.what();
    }
  }

  TempDirectory dir;
};

TEST_F(External, IsReadAtItsOffset) {
  EXPECT_EQ(read(located("w.bin")).real(9), 9);
  EXPECT_EQ(read(located("w.bin", "40", "40")).real(0), 10);
  EXPECT_EQ(read(located("w.bin", "360")).real(9), 99);
}

TEST_F(External, BoundsAreChecked) {
  expect_refused(located("w.bin", "361"), "run past the end of 'w.bin', which has 400");
  expect_refused(located("w.bin", "18446744073709551615"), "run past the end");
  expect_refused(located("w.bin", "400", "40"), "run past the end");
  expect_refused(located("w.bin", "0", "39"), "length is 39 bytes, expected 40");
  expect_refused(located("w.bin", "-4"), "offset is '-4', expected a number of bytes");
  expect_refused(located("w.bin", "99999999999999999999"), "expected a number of bytes");
  expect_refused(located("w.bin", "4x"), "expected a number of bytes");
}

TEST_F(External, OnlyRegularFilesBelowTheModelAreOpened) {
  TempDirectory outside;
  outside.write("secret", std::string(400, 's'));
  std::filesystem::create_directory(dir.path() / "sub");
  std::filesystem::create_symlink(outside.path() / "secret", dir.path() / "link");
  std::filesystem::create_directory_symlink(outside.path(), dir.path() / "linked");
  ASSERT_EQ(::mkfifo((dir.path() / "fifo").c_str(), 0600), 0);
  std::string up = "../" + outside.path().filename().string() + "/secret";
  for (const std::string& location :
       {up, "sub/../" + up, (outside.path() / "secret").string(), std::string("link"),
        std::string("linked/secret"), std::string("fifo"), std::string("sub"), std::string("."),
        std::string(""), std::string("w.bin\0x", 7), std::string("/dev/zero"), std::string("none")})
    expect_refused(located(location), "tensor 't'");
  dir.write("sub/w.bin", std::string(40, '\0'));
  EXPECT_EQ(read(located("sub/w.bin")).count(), 10);
}

// ==== .npy and raw files

TEST(Npy, RoundTripsEveryDtypeAndRank) {
  TempDirectory dir;
  for (DType dtype : all_dtypes)
    for (const std::vector<std::int64_t>& dims :
         std::vector<std::vector<std::int64_t>>{{}, {1}, {7}, {2, 3}, {0, 4}, {2, 1, 3, 2}}) {
      Array a = sample(dtype, dims);
      write_npy(dir.path() / "a.npy", a);
      EXPECT_EQ(read_npy(dir.path() / "a.npy"), a) << a.type();
    }
}

TEST(Npy, TextsAreOfOneWidth) {
  TempDirectory dir;
  const std::filesystem::path file = dir.path() / "a.npy";
  const std::vector<std::string_view> texts = {
      "a", "", "\xc3\xa9\xe2\x82\xac", "\xff", "\xf0\x9f\x98\x80", "b c"};
  for (const std::vector<std::int64_t>& dims :
       std::vector<std::vector<std::int64_t>>{{6}, {2, 3}, {1, 6, 1}}) {
    const Array a = text_array(dims, texts);
    write_npy(file, a);
    EXPECT_EQ(read_npy(file), a);
    EXPECT_EQ(read_tensor_file(file, a.type()), a);
  }
  const Array none = text_array({0, 2}, {});
  write_npy(file, none);
  EXPECT_EQ(read_npy(file), none);
  EXPECT_THROW(read_tensor_file(dir.write("a.raw", "12345678"), none.type()), UserError);
}

TEST(Npy, SmallDtypesAreTheirCodes) {
  TempDirectory dir;
  for (DType t : {DType::i2, DType::u4, DType::f4e2m1, DType::f8e4m3fn, DType::f8e8m0}) {
    const Array a = sample(t, {2, 3});
    write_npy(dir.path() / "a.npy", a);
    EXPECT_EQ(read_npy(dir.path() / "a.npy").dtype(), code_dtype(t));
    EXPECT_EQ(read_tensor_file(dir.path() / "a.npy", a.type()), a) << t;
    EXPECT_EQ(read_tensor_file(dir.write("a.raw", {reinterpret_cast<const char*>(a.bytes().data()),
                                                   a.bytes().size()}),
                               a.type()),
              a)
        << t;
  }
}

std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string head = "\x93NUMPY";
  head += static_cast<char>(version);
  head += '\0';
  std::size_t width = version == 1 ? 2 : 4;
  for (std::size_t i = 0; i < width; ++i) head += static_cast<char>(dict.size() >> 8 * i);
  return head + dict + data;
}

TEST(Npy, HeadersOfOtherWritersAreRead) {
  TempDirectory dir;
  const std::string data(24, '\0');
  auto read = [&](const std::string& dict, int version = 1) {
    return read_npy(dir.write("a.npy", npy(dict, data, version))).type();
  };
  EXPECT_EQ(read("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n"), f32({2, 3}));
  EXPECT_EQ(read("{\"shape\":(2,3,),\"fortran_order\":False,\"descr\":\"<f4\"}"), f32({2, 3}));
  EXPECT_EQ(read("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n", 2),
            Type(DType::f64, {3}));
  EXPECT_EQ(read("{'descr': '<f8', 'fortran_order': True, 'shape': (3,), }\n", 3),
            Type(DType::f64, {3}));
}

TEST(Npy, WhatIsNotReadIsRefusedWithTheReason) {
  TempDirectory dir;
  const std::string data(24, '\0');
  auto failure = [&](const std::string& bytes) -> std::string {
    try {
      read_npy(dir.write("a.npy", bytes));
    } catch (const UserError& e) {
      return e.what();
    }
    return "no error";
  };
  auto dict = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  };
  EXPECT_NE(failure("PK").find("not a .npy file"), std::string::npos);
  EXPECT_NE(
      failure(npy(dict("'<Ux'", "False", "(6,)"), data)).find("width of the strings is missing"),
      std::string::npos);
  EXPECT_NE(failure(npy(dict("'<U9'", "False", "(6,)"), data)).find("6 strings of 9"),
            std::string::npos);
  EXPECT_NE(failure(npy(dict("'<U0'", "False", "(99999999999,)"), ""))
                .find("99999999999 strings, expected at most"),
            std::string::npos);
  EXPECT_NE(
      failure(npy(dict("'<U1'", "False", "(1,)"), "\xff\xff\xff\xff")).find("an invalid character"),
      std::string::npos);
  EXPECT_NE(failure(npy(dict("'>f4'", "False", "(6,)"), data)).find("'>f4' is not supported"),
            std::string::npos);
  EXPECT_NE(failure(npy(dict("'|O'", "False", "(6,)"), data)).find("is not supported"),
            std::string::npos);
  EXPECT_NE(failure(npy(dict("[('a', '<f4')]", "False", "(6,)"), data)).find("structured"),
            std::string::npos);
  EXPECT_NE(failure(npy(dict("'<f4'", "True", "(2, 3)"), data)).find("ascontiguousarray"),
            std::string::npos);
  EXPECT_NE(failure(npy(dict("'<f4'", "False", "(7,)"), data)).find("expected 28"),
            std::string::npos);
  EXPECT_NE(
      failure(npy(dict("'<f4'", "False", "(-6,)"), data)).find("expected non-negative integers"),
      std::string::npos);
  EXPECT_NE(failure(npy(dict("'<f4'", "False", "(99999999999999999999,)"), data))
                .find("expected non-negative integers"),
            std::string::npos);
  EXPECT_NE(failure(npy(dict("'<f4'", "False", "(4294967296, 4294967296)"), data)).find("64 bits"),
            std::string::npos);
  EXPECT_NE(failure(npy("{}", data)).find("missing"), std::string::npos);
  EXPECT_NE(failure(npy("{'shape'", data)).find("has no value"), std::string::npos);
  std::string good = npy(dict("'<f4'", "False", "(6,)"), data);
  for (std::size_t n = 0; n < good.size(); ++n) EXPECT_NE(failure(good.substr(0, n)), "no error");
  EXPECT_NE(failure(npy(dict("'<f4'", "False", "(6,)"), data, 9)).find("version is 9"),
            std::string::npos);
}

TEST(RawFiles, OneOpenSizeFollowsFromTheFile) {
  TempDirectory dir;
  auto path = dir.write("x.bin", std::string(48, '\0'));
  Dim n = Dim::symbol("n", 1, 100), m = Dim::symbol("m", 1, 100);
  EXPECT_EQ(read_tensor_file(path, f32({3, 4})).dims(), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(read_tensor_file(path, f32({n, 4})).dims(), (std::vector<std::int64_t>{3, 4}));
  EXPECT_THROW(read_tensor_file(path, f32({n, 5})), UserError);
  EXPECT_THROW(read_tensor_file(path, f32({n, m})), UserError);
  EXPECT_THROW(read_tensor_file(path, f32({3, 5})), UserError);
}

}  // namespace
}  // namespace hone
