// Wrong uses of the C interface, its C++ layer, sessions and the builder: each returns a status or
// throws an exception that says what is wrong, without invalid memory accesses.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "api/compiler.h"
#include "api/runtime/runtime.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

// The message of the exception; errors that are not the caller's fault begin with "DEFECT".
std::string said(const std::function<void()>& f) {
  try {
    f();
    return "accepted";
  } catch (const runtime::Error& e) {
    return cat(e.status == HONE_ERROR_INTERNAL ? "DEFECT " : "", e.what());
  } catch (const UserError& e) {
    return e.what();
  } catch (const std::exception& e) {
    return cat("DEFECT ", e.what());
  }
}

// y = relu(x w) with a batch of 1 to 64, and z = x in place; saved as a plan file.
class Misuse : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = fs::temp_directory_path() / cat("hone_misuse_test_", ::getpid());
    fs::create_directories(directory_);
    ::setenv("HONE_CACHE_DIR", (directory_ / "cache").c_str(), 1);
    Builder b;
    Value x = b.input(f32({Dim::symbol("batch", 1, 64), 8}), "x");
    Value w = b.weight(Array::zeros(DType::f32, {8, 4}));
    b.output(ops::relu(ops::matmul(x, w)), "y");
    plan_ =
        std::make_shared<const Plan>(compile(source(b.function(), "small"), {.strategy = "cpu"}));
    write_plan(file(), *plan_);
    std::ofstream(directory_ / "text.hone") << "this is not a plan at all";
    std::ofstream(directory_ / "cut.hone", std::ios::binary)
        << std::string("\x40\0\0\0\0\0\0\0{\"a\"", 12);
    std::ofstream(directory_ / "empty.hone").flush();
  }
  static void TearDownTestSuite() {
    plan_.reset();
    fs::remove_all(directory_);
  }
  static std::string file() { return (directory_ / "small.hone").string(); }
  static std::string path(const char* name) { return (directory_ / name).string(); }

  struct Case {
    const char* what;
    std::function<void()> call;
    std::vector<std::string> says;
  };
  static void expect_refused(const std::vector<Case>& cases) {
    for (const Case& c : cases) {
      const std::string text = said(c.call);
      for (const std::string& part : c.says)
        EXPECT_NE(text.find(part), std::string::npos) << c.what << ": " << text;
      EXPECT_EQ(text.find("DEFECT"), std::string::npos) << c.what << ": " << text;
      EXPECT_EQ(text.find("defect"), std::string::npos) << c.what << ": " << text;
    }
  }

  static fs::path directory_;
  static std::shared_ptr<const Plan> plan_;
};
fs::path Misuse::directory_;
std::shared_ptr<const Plan> Misuse::plan_;

TEST_F(Misuse, OfTheCInterface) {
  using runtime::check;
  runtime::Executable executable(file());
  hone_executable* e = executable.get();
  hone_session* s = nullptr;
  ASSERT_EQ(hone_session_create(e, nullptr, &s), HONE_OK);
  std::vector<float> x(8), y(4);
  const std::int64_t in[] = {1, 8}, out[] = {1, 4}, none[] = {-1, 8}, wide[] = {1, 9},
                     large[] = {65, 8}, huge[] = {std::int64_t{1} << 62, 8};
  hone_executable* other = nullptr;
  hone_session* session = nullptr;
  hone_tensor_info info;
  std::int64_t dims[HONE_MOST_AXES];
  std::int32_t rank = 0;
  std::size_t room = 0;
  const auto bind = [&](hone_dtype dtype, const std::int64_t* d, std::int32_t r, const void* data,
                        std::size_t bytes) {
    check(hone_bind_input(s, 0, dtype, d, r, data, bytes));
  };
  const auto create = [&](hone_session_options options) {
    check(hone_session_create(e, &options, &session));
  };
  expect_refused({
      {"load null", [&] { check(hone_load(nullptr, &other)); }, {"path is null"}},
      {"load into null", [&] { check(hone_load(file().c_str(), nullptr)); }, {"out is null"}},
      {"load nothing", [&] { check(hone_load("/none.hone", &other)); }, {"/none.hone", "opened"}},
      {"load a directory", [&] { check(hone_load("/", &other)); }, {"not a regular file"}},
      {"load text",
       [&] { check(hone_load(path("text.hone").c_str(), &other)); },
       {"text.hone", "is not a safetensors file or plan"}},
      {"load a part", [&] { check(hone_load(path("cut.hone").c_str(), &other)); }, {"truncated"}},
      {"load an empty file",
       [&] { check(hone_load(path("empty.hone").c_str(), &other)); },
       {"0 bytes"}},
      {"count of null",
       [&] {
         if (hone_input_count(nullptr) < 0) check(HONE_ERROR_USER);
       },
       {"executable is null"}},
      {"info of null", [&] { check(hone_input_info(nullptr, 0, &info)); }, {"is null"}},
      {"info into null", [&] { check(hone_input_info(e, 0, nullptr)); }, {"is null"}},
      {"info of input 1",
       [&] { check(hone_input_info(e, 1, &info)); },
       {"input 1 does not exist; the plan has 1 inputs"}},
      {"info of output -1", [&] { check(hone_output_info(e, -1, &info)); }, {"output -1"}},
      {"share null", [&] { check(hone_executable_share(nullptr, &other)); }, {"is null"}},
      {"session of null",
       [&] { check(hone_session_create(nullptr, nullptr, &session)); },
       {"executable is null"}},
      {"negative threads", [&] { create({.threads = -2}); }, {"threads is -2"}},
      {"too many threads", [&] { create({.threads = 1'000'000}); }, {"1000000", "1 to 1024"}},
      {"affinity without a list", [&] { create({.affinity_count = 4}); }, {"affinity is null"}},
      {"negative memory", [&] { create({.max_memory = -1}); }, {"max_memory is -1"}},
      {"a pool without a function",
       [&] {
         hone_pool p = {.threads = 1};
         create({.pool = &p});
       },
       {"needs a run function"}},
      {"an allocator without functions",
       [&] {
         hone_allocator a = {};
         create({.allocator = &a});
       },
       {"alloc or free is null"}},
      {"bind to null",
       [&] { check(hone_bind_input(nullptr, 0, HONE_F32, in, 2, x.data(), 32)); },
       {"session is null"}},
      {"bind input 1",
       [&] { check(hone_bind_input(s, 1, HONE_F32, in, 2, x.data(), 32)); },
       {"input 1 does not exist"}},
      {"bind another dtype",
       [&] { bind(HONE_F64, in, 2, x.data(), 64); },
       {"f64[1,8]", "f32[batch,8]", "convert"}},
      {"bind no dtype",
       [&] { bind(static_cast<hone_dtype>(30), in, 2, x.data(), 32); },
       {"dtype is 30, expected"}},
      {"bind rank 1", [&] { bind(HONE_F32, in, 1, x.data(), 4); }, {"f32[1]", "reshape"}},
      {"bind rank 17", [&] { bind(HONE_F32, in, 17, x.data(), 32); }, {"rank is 17"}},
      {"bind without dims", [&] { bind(HONE_F32, nullptr, 2, x.data(), 32); }, {"dims is null"}},
      {"bind another size",
       [&] { bind(HONE_F32, wide, 2, x.data(), 36); },
       {"axis 1 is 9, expected 8"}},
      {"bind beyond the range",
       [&] { bind(HONE_F32, large, 2, x.data(), 2080); },
       {"is 65", "1 to 64"}},
      {"bind a negative size", [&] { bind(HONE_F32, none, 2, x.data(), 32); }, {"-1"}},
      {"bind sizes that overflow", [&] { bind(HONE_F32, huge, 2, x.data(), 32); }, {"axis 0"}},
      {"bind too little",
       [&] { bind(HONE_F32, in, 2, x.data(), 28); },
       {"has 28 bytes", "exactly 32"}},
      {"bind null memory", [&] { bind(HONE_F32, in, 2, nullptr, 32); }, {"the memory is null"}},
      {"run without inputs", [&] { check(hone_run(s)); }, {"input 'x' is not bound"}},
      {"sizes before a run",
       [&] { check(hone_result_dims(s, 0, dims, &rank)); },
       {"call hone_run"}},
      {"sizes of output 3",
       [&] {
         bind(HONE_F32, in, 2, x.data(), 32);
         check(hone_output_dims(s, 3, dims, &rank));
       },
       {"output 3 does not exist"}},
      {"bytes of output 3",
       [&] { check(hone_output_bytes(s, 3, &room)); },
       {"output 3 does not exist"}},
      {"bytes to nowhere", [&] { check(hone_output_bytes(s, 0, nullptr)); }, {"bytes is null"}},
      {"run without outputs", [&] { check(hone_run(s)); }, {"output 'y' is not bound"}},
      {"bind an output of another size",
       [&] { check(hone_bind_output(s, 0, HONE_F32, in, 2, x.data(), 32)); },
       {"f32[batch,4]"}},
      {"bind an output in the input",
       [&] {
         check(hone_bind_output(s, 0, HONE_F32, out, 2, x.data(), 16));
         check(hone_run(s));
       },
       {"shares memory with input 'x'"}},
      {"memory into null", [&] { check(hone_session_memory(s, nullptr)); }, {"is null"}},
      {"text of null",
       [&] {
         std::uint64_t n;
         check(hone_text_number(nullptr, 4, &n));
       },
       {"is null"}},
  });
  EXPECT_EQ(hone_bind_output(s, 0, HONE_F32, out, 2, y.data(), 16), HONE_OK);
  EXPECT_EQ(hone_run(s), HONE_OK) << hone_last_error();
  EXPECT_EQ(hone_poll(nullptr), 0);
  hone_stop(nullptr);
  hone_session_free(nullptr);
  hone_executable_free(nullptr);
  hone_session_free(s);
}

TEST_F(Misuse, OfTheCppLayer) {
  runtime::Executable executable(file());
  runtime::Session session(executable);
  std::vector<float> x(64), y(4), few(3);
  std::vector<std::int64_t> integers(8);
  expect_refused({
      {"too few numbers",
       [&] { session.bind_input(0, {1, 8}, few); },
       {"exactly 32", "has 12 bytes"}},
      {"too many numbers",
       [&] { session.bind_input(0, {1, 8}, x); },
       {"exactly 32", "has 256 bytes"}},
      {"integers", [&] { session.bind_input(0, {1, 8}, integers); }, {"i64[1,8]", "convert"}},
      {"another dtype's bytes", [&] { session.bind_input(0, HONE_F16, {1, 8}, few); }, {"f16"}},
      {"a flat input", [&] { session.bind_input(0, {8}, std::span(x).first(8)); }, {"reshape"}},
      {"no sizes", [&] { session.bind_input(0, {}, std::span(x).first(1)); }, {"f32[]"}},
      {"output 1", [&] { session.bind_output(1, {1, 4}, y); }, {"output 1 does not exist"}},
      {"an output too short",
       [&] { session.bind_output(0, {1, 4}, few); },
       {"exactly 16", "has 12 bytes"}},
      {"not bound", [&] { session.run(); }, {"not bound"}},
      {"submitted, not bound",
       [&] {
         session.submit();
         session.wait();
       },
       {"not bound"}},
      {"no file", [&] { runtime::Executable other("none.hone"); }, {"none.hone"}},
      {"moved from",
       [&] {
         runtime::Session moved(std::move(session));
         session.run();
       },
       {"session is null"}},
      {"executable moved from",
       [&] {
         runtime::Executable moved(std::move(executable));
         executable.inputs();
       },
       {"executable is null"}},
  });
}

// A refused call changes nothing: the tensors bound before are still used.
TEST_F(Misuse, ARefusedBindingLeavesTheSessionAsItWas) {
  runtime::Session session{runtime::Executable(file())};  // keeps the executable alive
  std::vector<float> x(8, 1), y(4, 7), few(3);
  session.bind_input(0, {1, 8}, x);
  session.bind_output(0, {1, 4}, y);
  EXPECT_THROW(session.bind_input(0, {1, 8}, few), runtime::Error);
  EXPECT_THROW(session.bind_input(0, {2, 8}, few), runtime::Error);
  EXPECT_THROW(session.bind_output(0, {2, 4}, few), runtime::Error);
  session.run();
  EXPECT_EQ(y, std::vector<float>(4, 0));
  runtime::Session moved = std::move(session);
  session = std::move(moved);
  y.assign(4, 7);
  session.run();
  EXPECT_EQ(y, std::vector<float>(4, 0));
}

TEST_F(Misuse, CopiesOfAnExecutableShareIt) {
  runtime::Executable first(file());
  runtime::Executable second = first;
  {
    const runtime::Executable gone = std::move(first);
  }
  first = second;
  EXPECT_EQ(second.inputs(), 1);
  EXPECT_EQ(first.inputs(), 1);
}

template <class R>
concept BindsInput =
    requires(runtime::Session& s, R&& r) { s.bind_input(0, runtime::Dims{1}, std::forward<R>(r)); };
template <class R>
concept BindsOutput = requires(runtime::Session& s, R&& r) {
  s.bind_output(0, runtime::Dims{1}, std::forward<R>(r));
};
static_assert(BindsInput<std::vector<float>&> && BindsInput<const std::vector<float>&>);
static_assert(BindsInput<std::span<const float>> && BindsInput<float (&)[3]>);
static_assert(BindsInput<std::array<std::uint8_t, 3>&>);
static_assert(!BindsInput<std::vector<float>>, "a temporary would be gone when run() reads it");
static_assert(!BindsInput<const std::vector<float>>);
static_assert(!BindsInput<float*> && !BindsInput<std::vector<bool>&>);
static_assert(BindsOutput<std::vector<float>&> && BindsOutput<std::span<float>>);
static_assert(!BindsOutput<const std::vector<float>&> && !BindsOutput<std::span<const float>>);
static_assert(!BindsOutput<std::vector<float>>);
static_assert(std::is_move_constructible_v<Session> && std::is_move_assignable_v<Session>);
static_assert(!std::is_copy_constructible_v<Session>);
static_assert(std::is_move_assignable_v<runtime::Session>);
static_assert(!std::is_copy_constructible_v<runtime::Session>);

TEST_F(Misuse, OfSessions) {
  const std::unique_ptr<Session> s = open_session(*plan_);
  const Array one = Array::zeros(DType::f32, {1, 8});
  std::vector<float> y(4);
  const std::int64_t out[] = {1, 4};
  const auto run = [&](std::vector<Array> inputs) { s->run(inputs); };
  expect_refused({
      {"no inputs", [&] { run({}); }, {"got 0 inputs, expected 1"}},
      {"two inputs", [&] { run({one, one}); }, {"got 2 inputs"}},
      {"an empty array", [&] { run({Array()}); }, {"input 'x'", "reshape"}},
      {"doubles", [&] { run({Array::zeros(DType::f64, {1, 8})}); }, {"f64[1,8]", "convert"}},
      {"input 9", [&] { s->bind_input(9, as_input(one)); }, {"input 9 does not exist"}},
      {"little memory",
       [&] { s->bind_output(0, {DType::f32, out, memory_of(y.data(), 3)}); },
       {"exactly 16", "has 12 bytes"}},
      {"an array of another size", [&] { Array(DType::f32, {3}, Storage()); }, {"needs 12 bytes"}},
      {"a negative array", [&] { Array::zeros(DType::f32, {-3}); }, {"-3 is negative"}},
      {"an endless array",
       [&] { Array::zeros(DType::f32, {std::int64_t{1} << 40, std::int64_t{1} << 40}); },
       {""}},
      {"an array that is too large",
       [&] { Array::zeros(DType::f32, {std::int64_t{1} << 50}); },
       {"out of memory", "bytes"}},
      {"an unknown strategy",
       [&] {
         Builder b;
         b.output(b.input(f32({2}), "x"), "y");
         compile(source(b.function()), {.strategy = "fastest"});
       },
       {"fastest", "cpu"}},
      {"too many threads", [&] { open_session(*plan_, {.threads = 5000}); }, {"5000"}},
      {"less memory than needed",
       [&] { open_session(*plan_, {.max_memory = 8})->run(std::span(&one, 1)); },
       {"the limit is 8", "raise the limit"}},
      {"an output file that cannot be", [&] { write_plan("/none/x.hone", *plan_); }, {"/none"}},
      {"a model that is not there", [&] { import_onnx("none.onnx"); }, {"none.onnx"}},
      {"weights that are not there", [&] { read_weights("none.gguf"); }, {"none.gguf"}},
  });
}

TEST_F(Misuse, OfTheBuilder) {
  Builder b, other;
  const Value x = b.input(f32({2, 3}), "x"), y = other.input(f32({2, 3}), "y");
  const Value i = b.input(i64({2}), "i");
  expect_refused({
      {"relu of nothing", [&] { ops::relu(Value{}); }, {"relu: operand 0 is empty"}},
      {"add of nothing", [&] { ops::add(x, Value{}); }, {"add: operand 1 is empty"}},
      {"plus nothing", [&] { x + Value{}; }, {"empty"}},
      {"nothing plus", [&] { Value{} + 1.0; }, {"empty"}},
      {"minus nothing", [&] { -Value{}; }, {"empty"}},
      {"type of nothing", [] { Value{}.type(); }, {"value: is empty"}},
      {"shape of nothing", [] { Value{}.shape(); }, {"value: is empty"}},
      {"dtype of nothing", [] { Value{}.dtype(); }, {"value: is empty"}},
      {"rank of nothing", [] { Value{}.rank(); }, {"value: is empty"}},
      {"operation of nothing", [] { Value{}.op(); }, {"value: is empty"}},
      {"attributes of nothing", [] { Value{}.attrs(); }, {"value: is empty"}},
      {"operands of nothing", [] { Value{}.operands(); }, {"value: is empty"}},
      {"operand of nothing", [] { Value{}.operand(0); }, {"value: is empty"}},
      {"number of operands of nothing", [] { Value{}.operand_count(); }, {"value: is empty"}},
      {"number of results of nothing", [] { Value{}.result_count(); }, {"value: is empty"}},
      {"parameter of an empty function",
       [] { Function().param(0); },
       {"parameter 0 does not exist; it has 0"}},
      {"result of an empty function",
       [] { Function().result(1); },
       {"result 1 does not exist; it has 0"}},
      {"no operands",
       [&] { ops::concat(std::vector<Value>{}, {{"axis", 0}}); },
       {"concat", "operands"}},
      {"two builders", [&] { ops::add(x, y); }, {"add", "different functions", "one Builder"}},
      {"result 1 of one", [&] { ops::relu(x).result(1).type(); }, {"result 1 does not exist"}},
      {"operand 4 of one", [&] { ops::relu(x).operand(4); }, {"operand 4 does not exist"}},
      {"shapes that differ",
       [&] { ops::add(x, ops::transpose(x, {{"perm", Dims{1, 0}}})); },
       {"add", "misuse_test.cpp:"}},
      {"dtypes that differ", [&] { ops::add(x, cast_to(x, DType::i32)); }, {"add"}},
      {"matmul of 3 and 2", [&] { ops::matmul(x, x); }, {"matmul", "3", "2"}},
      {"an attribute that is missing", [&] { ops::softmax(x); }, {"softmax", "axis"}},
      {"an attribute of another kind",
       [&] { ops::softmax(x, {{"axis", std::string("last")}}); },
       {"softmax", "axis"}},
      {"an axis that does not exist", [&] { ops::softmax(x, {{"axis", 5}}); }, {"softmax", "5"}},
      {"a reshape that loses numbers", [&] { reshape_to(x, {4}); }, {"reshape"}},
      {"a broadcast that shrinks", [&] { broadcast_to(x, {1, 3}); }, {"broadcast"}},
      {"a logarithm of integers", [&] { ops::log(i); }, {"log"}},
      {"an input twice", [&] { b.input(f32({1}), "x"); }, {"input 'x' already"}},
      {"an input without a name", [&] { b.input(f32({1}), ""); }, {"needs a name"}},
      {"an input of negative size", [&] { b.input(f32({-4}), "n"); }, {"0 or more"}},
      {"an input that is a token", [&] { b.input(Type::token(), "t"); }, {"expected a tensor"}},
      {"an empty output", [&] { b.output(Value{}, "e"); }, {"empty value"}},
      {"an output of another builder", [&] { b.output(y, "o"); }, {"another builder"}},
      {"an output twice",
       [&] {
         b.output(x, "a");
         b.output(x, "a");
       },
       {"output 'a' already"}},
      {"a range without sizes", [&] { Dim::symbol("n", 5, 2); }, {"5 to 2", "0 <= low <= high"}},
      {"nothing to compile", [&] { compile(Source{}, {}); }, {"nothing to compile"}},
  });
}

}  // namespace
}  // namespace hone
