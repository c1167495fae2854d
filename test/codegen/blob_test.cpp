// Linking and loading: constants, helpers, several objects, tables of addresses, and refused input.
#include <gtest/gtest.h>
#include <llvm-c/Core.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>

#include "backend/cpu/device/helpers.h"
#include "base/error.h"
#include "codegen/llvm/math.h"
#include "jit.h"
#include "ops/ops.h"

namespace hone::llvm {

namespace {

const char* base_target = "x86-64-v3";

Object compile(const std::function<void(Module&)>& build) {
  TargetSpec spec = cpu::target_spec(base_target);
  Module m("test", spec);
  build(m);
  return Emitter(spec).compile(m);
}

// A kernel that writes its number.
Object numbered(const std::string& name, std::int64_t number) {
  return compile([&](Module& m) {
    KernelArguments k = m.begin_kernel(name, std::vector<Buffer>(1));
    store(DType::i64, k.buffers[0], m.index(number));
    m.end_kernel();
  });
}

template <class Error, class F>
std::string message(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was thrown)";
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A declared function without parameters, called from a kernel.
Object calls(const std::string& name) {
  return compile([&](Module& m) {
    KernelArguments k = m.begin_kernel("f", std::vector<Buffer>(1));
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(m.context()), nullptr, 0, false);
    LLVMValueRef f = LLVMAddFunction(m.module(), name.c_str(), type);
    LLVMBuildCall2(m.builder(), type, f, nullptr, 0, "");
    m.end_kernel();
  });
}

struct WithIsa {  // sets the flag while it lives
  explicit WithIsa(const char* isa) { ::setenv("HONE_CPU_ISA", isa, 1); }
  ~WithIsa() { ::unsetenv("HONE_CPU_ISA"); }
};

}  // namespace

TEST(Blob, ConstantsLieAligned) {
  std::vector<float> numbers(64);
  std::iota(numbers.begin(), numbers.end(), 0.5f);
  LoadedBinary code = jit_kernel(base_target, 1, [&](Module& m, const KernelArguments& k) {
    Pointer data = m.constant_data(std::as_bytes(std::span(numbers)), 64);
    m.loop(m.index(0), m.index(64), 16, [&](Value i) {
      // An aligned load traps when the address is not.
      Value v = load(DType::f32, offset(data, DType::f32, i), 16, {.align = 64});
      store(DType::f32, offset(k.buffers[0], DType::f32, i), v + m.iota({DType::f32, 16}));
    });
  });
  std::vector<float> out(64);
  run(code, {out.data()}, 0);
  for (std::size_t i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], numbers[i] + static_cast<float>(i % 16)) << i;
}

TEST(Blob, SeveralObjectsBecomeOneBlob) {
  std::vector<Object> objects;
  for (int i = 0; i < 5; ++i) objects.push_back(numbered("k" + std::to_string(i), 100 + i));
  Binary b = link_objects(objects, base_target);
  EXPECT_EQ(b.entries.size(), 5u);
  LoadedBinary code = load(b);
  for (int i = 0; i < 5; ++i) {
    std::int64_t out = 0;
    void* buffers[] = {&out};
    code.entry("k" + std::to_string(i))(buffers, nullptr, 0, 1, nullptr);
    EXPECT_EQ(out, 100 + i);
  }
}

TEST(Blob, SeveralBinariesShareAMapping) {
  std::vector<Binary> binaries;
  for (int i = 0; i < 3; ++i) {
    Object o = numbered("k" + std::to_string(i), i);
    binaries.push_back(link_objects(std::span(&o, 1), base_target));
  }
  std::vector<const Binary*> all;
  for (const Binary& b : binaries) all.push_back(&b);
  LoadedBinary code = load(all);
  for (int i = 0; i < 3; ++i) {
    std::int64_t out = -1;
    void* buffers[] = {&out};
    code.entry("k" + std::to_string(i))(buffers, nullptr, 0, 1, nullptr);
    EXPECT_EQ(out, i);
  }
  all.push_back(all[0]);
  EXPECT_TRUE(holds(message<UserError>([&] { load(all); }), "'k0'"));
}

TEST(Blob, HelpersAreCalled) {
  LoadedBinary code = jit_kernel(base_target, 3, [](Module&, const KernelArguments& k) {
    Value x = load(DType::f32, k.buffers[0], 8), y = load(DType::f32, k.buffers[1], 8);
    store(DType::f32, k.buffers[2], fmod(x, y));
    copy_bytes(offset(k.buffers[2], DType::f32, 8), k.buffers[0], k.size(0));
    fill_bytes(offset(k.buffers[2], DType::f32, 16), 7, k.size(0));
  });
  std::vector<float> x = {5.5f, -5.5f, 7, 1e9f, 3, 0, 9, 2}, y = {2, 2, 0, 7, INFINITY, 3, 9, 0.3f};
  std::vector<float> out(24);
  run(code, {x.data(), y.data(), out.data()}, 30);
  for (std::size_t i = 0; i < 8; ++i) {
    float exact = std::fmod(x[i], y[i]);
    EXPECT_TRUE(out[i] == exact || (std::isnan(out[i]) && std::isnan(exact))) << i;
  }
  EXPECT_EQ(std::memcmp(&out[8], x.data(), 30), 0);
  const char* bytes = reinterpret_cast<const char*>(out.data());
  EXPECT_EQ(bytes[8 * 4 + 30], 0);
  EXPECT_EQ(bytes[16 * 4 + 29], 7);
  EXPECT_EQ(bytes[16 * 4 + 30], 0);
}

TEST(Blob, EveryHelperOfTheTableHasAnAddress) {
  for (std::string_view name : helper_names()) {
    const void* address = helper_address(*helper_number(name));
    if (!name.starts_with("__")) {
      EXPECT_NE(address, nullptr) << name;
    }
  }
  EXPECT_EQ(helper_number("system"), std::nullopt);
}

// The compiler reads the address of a symbol that another object might define from a table entry;
// here the address is known, so the code uses it directly.
TEST(Blob, AddressesThroughATableAreMadeDirect) {
  Object user = compile([](Module& m) {
    KernelArguments g = m.begin_kernel("g", std::vector<Buffer>(1));
    store(DType::i64, g.buffers[0], m.index(5));
    m.end_kernel();
    KernelArguments k = m.begin_kernel("f", std::vector<Buffer>(1));
    LLVMValueRef address = LLVMGetNamedFunction(m.module(), "g");
    LLVMBuildStore(m.builder(), address, k.buffers[0].ref);
    m.end_kernel();
  });
  LoadedBinary code = load(link_objects(std::span(&user, 1), base_target));
  void* address = nullptr;
  run(code, {&address}, 0);
  EXPECT_EQ(address, reinterpret_cast<void*>(code.entry("g")));
}

TEST(Blob, AHelpersAddressIsReadFromItsSlot) {
  Object user = compile([](Module& m) {
    KernelArguments k = m.begin_kernel("f", std::vector<Buffer>(1));
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(m.context()), nullptr, 0, false);
    LLVMBuildStore(m.builder(), LLVMAddFunction(m.module(), "erff", type), k.buffers[0].ref);
    m.end_kernel();
  });
  LoadedBinary code = load(link_objects(std::span(&user, 1), base_target));
  const void* address = nullptr;
  run(code, {&address}, 0);
  EXPECT_EQ(address, helper_address(*helper_number("erff")));
}

TEST(Blob, AnUnknownSymbolIsNamed) {
  Object o = calls("system_of_equations");
  std::string why = message<InternalError>([&] { link_objects(std::span(&o, 1), base_target); });
  EXPECT_TRUE(holds(why, "system_of_equations")) << why;
}

TEST(Blob, ASymbolOfTwoObjectsIsNamed) {
  std::vector<Object> twice = {numbered("same", 1), numbered("same", 2)};
  std::string why = message<InternalError>([&] { link_objects(twice, base_target); });
  EXPECT_TRUE(holds(why, "same")) << why;
}

TEST(Blob, KernelsHaveNoVariables) {
  Object o = compile([](Module& m) {
    KernelArguments k = m.begin_kernel("f", std::vector<Buffer>(1));
    LLVMTypeRef i64 = m.llvm_type({DType::i64, 1});
    LLVMValueRef variable = LLVMAddGlobal(m.module(), i64, "counter");
    LLVMSetInitializer(variable, LLVMConstInt(i64, 1, false));
    LLVMSetLinkage(variable, LLVMInternalLinkage);
    store(DType::i64, {variable, &m}, load(DType::i64, k.buffers[0]));
    store(DType::i64, k.buffers[0], load(DType::i64, {variable, &m}));
    m.end_kernel();
  });
  EXPECT_THROW(link_objects(std::span(&o, 1), base_target), InternalError);
}

TEST(Blob, ADamagedObjectIsRefused) {
  Object o = numbered("f", 1);
  for (std::size_t size = 0; size < o.size(); size += 7) {
    Object cut(o.begin(), o.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(link_objects(std::span(&cut, 1), base_target), InternalError) << size;
  }
}

TEST(Blob, TheSameModuleGivesTheSameBytes) {
  Object a = numbered("f", 1), b = numbered("f", 1), c = numbered("f", 2);
  auto hash = [](const Object& o) {
    return content_hash(link_objects(std::span(&o, 1), base_target));
  };
  EXPECT_EQ(hash(a), hash(b));
  EXPECT_NE(hash(a), hash(c));
}

TEST(Loader, CodeIsNeverWritableAndExecutable) {
  Object o = numbered("f", 1);
  LoadedBinary code = load(link_objects(std::span(&o, 1), base_target));
  const auto at = reinterpret_cast<std::uintptr_t>(code.entry("f"));
  std::ifstream maps("/proc/self/maps");
  std::string line, found;
  while (std::getline(maps, line)) {
    std::uintptr_t low = std::stoull(line, nullptr, 16);
    std::uintptr_t high = std::stoull(line.substr(line.find('-') + 1), nullptr, 16);
    if (low <= at && at < high) found = line.substr(line.find(' ') + 1, 4);
  }
  EXPECT_EQ(found, "r-xp");
}

TEST(Loader, NamesBothInstructionSets) {
  Object o = numbered("f", 1);
  Binary b = link_objects(std::span(&o, 1), "x86-64-v4");
  WithIsa limit("x86-64-v3");
  std::string why = message<UserError>([&] { load(b, "a.hone"); });
  EXPECT_TRUE(holds(why, "a.hone") && holds(why, "x86-64-v4") && holds(why, "x86-64-v3")) << why;
  // The message names the limit: the flag, or the processor's own features.
  EXPECT_EQ(holds(why, "HONE_CPU_ISA"), cpu::machine_isa() >= cpu::Isa::v4) << why;
  EXPECT_EQ(holds(why, "this processor"), cpu::machine_isa() < cpu::Isa::v4) << why;
}

TEST(Loader, RefusesAnUnknownTargetAndAMissingEntry) {
  Object o = numbered("f", 1);
  Binary b = link_objects(std::span(&o, 1), base_target);
  EXPECT_TRUE(holds(message<UserError>([&] { load(b).entry("g"); }), "'g'"));
  EXPECT_EQ(load(b).find("g"), nullptr);
  b.target = "sparc";
  EXPECT_TRUE(holds(message<UserError>([&] { load(b); }), "'sparc'"));
}

TEST(TargetSpec, NativeFollowsTheFlag) {
  WithIsa limit("x86-64-v3");
  TargetSpec spec = cpu::target_spec("native");
  EXPECT_EQ(spec.name, "x86-64-v3");
  EXPECT_EQ(spec.vector_bits, 256);
}

TEST(Emitter, BothEffortsAgree) {
  std::vector<float> in(40), quick(40), normal(40);
  std::iota(in.begin(), in.end(), -20.0f);
  auto body = [](Module& m, const KernelArguments& k) {
    m.loop(m.index(0), k.size(0), 8, [&](Value i) {
      store(DType::f32, offset(k.buffers[1], DType::f32, i),
            real_function(ops::erf)(load(DType::f32, offset(k.buffers[0], DType::f32, i), 8)));
    });
  };
  run(jit_kernel(base_target, 2, body, Effort::quick), {in.data(), quick.data()}, 40);
  run(jit_kernel(base_target, 2, body, Effort::normal), {in.data(), normal.data()}, 40);
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(quick[i], normal[i], 1e-6) << in[i];
}

}  // namespace hone::llvm
