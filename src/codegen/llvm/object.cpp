#include "codegen/llvm/object.h"

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <cstring>
#include <mutex>
#include <new>

#include "base/error.h"
#include "base/sanitizer.h"

// LLVM's C interface has no out-of-memory handler, so its C++ function is declared here.
namespace llvm {
void install_bad_alloc_error_handler(void (*handler)(void*, const char*, bool), void* data);
}

namespace hone::llvm {

namespace {

// Kernels are already explicit vector code, so the passes only clean up after the builder: equal
// addresses, foldable casts, loop invariants.
constexpr const char* passes = "function(early-cse,instsimplify,loop-mssa(licm),early-cse)";
constexpr const char* sanitizer_passes = with_address_sanitizer  ? "asan"
                                         : with_thread_sanitizer ? "tsan-module,function(tsan)"
                                                                 : nullptr;

// Options that only LLVM's process-wide command line can set. Loop strength reduction takes 45 % of
// code generation for a small kernel and gains nothing: the builder's addresses fold into
// instructions. Kernels run to completion, so no stack frame outlives its function, and
// AddressSanitizer does not need its runtime's variables to check for it.
void set_process_options() {
  const char* options[] = {"hone", "-disable-lsr", "-asan-use-after-return=never"};
  LLVMParseCommandLineOptions(with_address_sanitizer ? 3 : 2, options, nullptr);
}

// A string that LLVM allocated.
std::string take(char* text) {
  std::string out = text ? text : "";
  LLVMDisposeMessage(text);
  return out;
}

LLVMTargetRef find_target(const std::string& triple) {
  static std::once_flag once;
  std::call_once(once, [] {
    set_process_options();
    // Without a handler LLVM terminates the process.
    ::llvm::install_bad_alloc_error_handler(
        [](void*, const char*, bool) { throw std::bad_alloc(); }, nullptr);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  LLVMTargetRef target = nullptr;
  char* error = nullptr;
  LLVMGetTargetFromTriple(triple.c_str(), &target, &error);
  const std::string why = take(error);
  HONE_ASSERT(target, "LLVM: ", why);
  return target;
}

LLVMTargetMachineRef make_machine(const TargetSpec& spec, Effort effort) {
  LLVMTargetMachineOptionsRef options = LLVMCreateTargetMachineOptions();
  LLVMTargetMachineOptionsSetCPU(options, spec.processor.c_str());
  LLVMTargetMachineOptionsSetFeatures(options, spec.features.c_str());
  LLVMTargetMachineOptionsSetCodeGenOptLevel(
      options, effort == Effort::quick ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault);
  LLVMTargetMachineOptionsSetRelocMode(options, LLVMRelocPIC);
  LLVMTargetMachineOptionsSetCodeModel(options, LLVMCodeModelSmall);
  LLVMTargetMachineRef machine =
      LLVMCreateTargetMachineWithOptions(find_target(spec.triple), spec.triple.c_str(), options);
  LLVMDisposeTargetMachineOptions(options);
  HONE_ASSERT(machine, "LLVM has no machine for ", spec.processor);
  return machine;
}

// Collects LLVM's errors about one module while it lives.
class Diagnostics {
 public:
  explicit Diagnostics(const Module& m) : module_(m) {
    LLVMContextSetDiagnosticHandler(m.context(), &Diagnostics::take_one, this);
  }
  ~Diagnostics() { LLVMContextSetDiagnosticHandler(module_.context(), nullptr, nullptr); }
  Diagnostics(const Diagnostics&) = delete;

  void throw_if_any() const { HONE_ASSERT(errors_.empty(), "LLVM: ", errors_); }

 private:
  static void take_one(LLVMDiagnosticInfoRef info, void* self) {
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError) return;
    static_cast<Diagnostics*>(self)->errors_ += take(LLVMGetDiagInfoDescription(info)) + "; ";
  }
  const Module& module_;
  std::string errors_;
};

struct Output {
  LLVMMemoryBufferRef buffer = nullptr;
  ~Output() {
    if (buffer) LLVMDisposeMemoryBuffer(buffer);
  }
};

}  // namespace

struct Emitter::State {
  LLVMTargetMachineRef machine = nullptr;
};

Emitter::Emitter(const TargetSpec& spec, Effort effort)
    : state_(new State{make_machine(spec, effort)}) {}

Emitter::~Emitter() { LLVMDisposeTargetMachine(state_->machine); }

namespace {

void run_passes(Module& m, LLVMTargetMachineRef machine, const char* list) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(m.module(), list, machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (!error) return;
  char* text = LLVMGetErrorMessage(error);
  std::string why = text;
  LLVMDisposeErrorMessage(text);
  HONE_ASSERT(false, "passes ", list, ": ", why);
}

void emit_as(Module& m, LLVMTargetMachineRef machine, LLVMCodeGenFileType kind, Output& out) {
  Diagnostics diagnostics(m);
  char* message = nullptr;
  bool failed =
      LLVMTargetMachineEmitToMemoryBuffer(machine, m.module(), kind, &message, &out.buffer);
  std::string why = take(message);
  diagnostics.throw_if_any();
  HONE_ASSERT(!failed, "LLVM: ", why);
}

}  // namespace

void Emitter::optimize(Module& m) const {
  Diagnostics diagnostics(m);
  run_passes(m, state_->machine, passes);
  if (sanitizer_passes) run_passes(m, state_->machine, sanitizer_passes);
  diagnostics.throw_if_any();
}

Object Emitter::emit(Module& m) const {
  Output out;
  emit_as(m, state_->machine, LLVMObjectFile, out);
  const auto* start = reinterpret_cast<const std::byte*>(LLVMGetBufferStart(out.buffer));
  return Object(start, start + LLVMGetBufferSize(out.buffer));
}

std::string Emitter::assembly(Module& m) const {
  Output out;
  emit_as(m, state_->machine, LLVMAssemblyFile, out);
  return std::string(LLVMGetBufferStart(out.buffer), LLVMGetBufferSize(out.buffer));
}

Object Emitter::compile(Module& m) const {
  m.verify();
  optimize(m);
  return emit(m);
}

}  // namespace hone::llvm
