#include "codegen/c/program.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/checked.h"
#include "base/error.h"
#include "base/replace_file.h"
#include "codegen/c/module.h"
#include "codegen/c/program_files.h"
#include "codegen/c/text.h"
#include "codegen/c/weights.h"

namespace hone::c {

namespace {

// Collects everything in a plan that cannot be written as C, to report it at once.
class Problems {
 public:
  void add(const std::string& text) {
    if (std::find(list_.begin(), list_.end(), text) == list_.end()) list_.push_back(text);
  }
  void throw_if_any(const std::string& name) const {
    if (list_.empty()) return;
    std::string text;
    for (const std::string& p : list_) text += cat("\n  ", p);
    throw UserError(name, ": cannot be written as C:", text);
  }

 private:
  std::vector<std::string> list_;
};

// Reports inputs and outputs whose sizes are not numbers.
void check_sizes(const Plan& plan, Problems& problems) {
  auto check = [&](const char* what, const PlanParam& p) {
    for (const Dim& d : p.type.shape.dims)
      for (const Dim& s : d.is_number() ? Dims() : d.symbols())
        problems.add(cat(what, " '", p.name, "' ", p.type, ": size '", s.name(),
                         "' is not fixed; give --dim ", s.name(), "=NUMBER"));
  };
  for (const PlanParam& p : plan.main().params) check("input", p);
  for (const PlanParam& p : plan.main().results) check("output", p);
}

void check_steps(const Variant& v, Problems& problems) {
  if (v.devices.size() > 1) problems.add(cat(v.devices.size(), " devices"));
  for_each_step(v.steps, [&](const Step& s) {
    const std::string origin =
        s.group < v.groups.size() ? cat(" (", v.groups[s.group].origins, ")") : "";
    if (s.kind == Step::Kind::library)
      problems.add(
          cat("library call ", s.name, origin, "; compile with a strategy of kernels alone"));
    if (s.kind == Step::Kind::measure)
      problems.add(cat("size '", s.scalars[0], "', which data decides", origin));
    if (s.kind == Step::Kind::host) problems.add(cat("host function ", s.name, origin));
    if (s.kind == Step::Kind::collective) problems.add(cat("collective ", s.name, origin));
  });
}

const Variant& only_variant(const Plan& plan) {
  for (const Variant& v : plan.main().variants)
    if (std::all_of(v.guards.begin(), v.guards.end(), [](const Guard& g) {
          return g.a.is_number() && g.b.is_number() && holds(g, g.a.number(), g.b.number());
        }))
      return v;
  throw UserError(plan.name, ": no variant of the plan supports these sizes");
}

class ProgramWriter {
 public:
  ProgramWriter(const Plan& plan, const Variant& variant, std::span<const Kernel> kernels,
                const ProgramOptions& options)
      : plan_(plan),
        variant_(variant),
        kernels_(kernels),
        weights_(weights_file(plan)),
        module_(options.vector_bits) {
    const std::string& name = options.name.empty() ? plan.name : options.name;
    constexpr std::size_t most = 200;  // leaves room for endings of files and functions
    facts_.name = identifier(fit_file_name(name, "", most));
    facts_.embeds_weights = options.embed_weights;
    facts_.weights_bytes = weights_.bytes.size();
    facts_.checksum = weights_.checksum;
    add_values(plan.main().params, facts_.inputs);
    add_values(plan.main().results, facts_.outputs);
  }

  Program write() {
    const std::int64_t arena = round_up(number(variant_.devices[0].arena_bytes), 64);
    std::int64_t scratch = 0;
    for_each_step(variant_.steps, [&](const Step& s) {
      if (s.kind == Step::Kind::launch) scratch = std::max(scratch, number(s.scratch_bytes));
    });
    facts_.arena_bytes = arena + round_up(scratch, 64);
    scratch_ = scratch > 0 ? cat("memory + ", arena) : "NULL";
    out_.indent();
    write_steps(variant_.steps);
    Program p;
    p.name = facts_.name;
    p.arena_bytes = facts_.arena_bytes;
    p.kernels = static_cast<int>(entries_.size());
    p.files.push_back({facts_.name + ".h", header_text(facts_)});
    p.files.push_back({facts_.name + ".c", source_text(facts_, module_.text(), out_.str())});
    p.files.push_back({"example.c", example_text(facts_)});
    p.files.push_back({"CMakeLists.txt", cmake_text(facts_)});
    if (facts_.embeds_weights)
      p.files.push_back(
          {facts_.name + "_weights.c", cat("#include \"", facts_.name, ".h\"\n\n",
                                           array_text(facts_.name + "_weights", weights_.bytes))});
    p.weights = std::move(weights_.bytes);
    return p;
  }

 private:
  static std::int64_t number(const Dim& d) {
    if (!d.is_number()) throw UserError("a size inside of the model is not fixed: ", d);
    return d.number();
  }

  void add_values(const std::vector<PlanParam>& list, std::vector<ProgramValue>& to) {
    for (const PlanParam& p : list) {
      std::string name = identifier(p.name);
      while (!names_.insert(name).second) name += "_";
      to.push_back({name, p.name, p.type, number(byte_count(p.type))});
    }
  }

  // An operand as (const) unsigned char *.
  std::string place(const View& v) {
    const PlanBuffer& b = variant_.buffers[v.buffer];
    const std::int64_t offset = number(v.offset);
    const std::string more = offset ? cat(" + ", offset) : "";
    switch (b.kind) {
      case PlanBuffer::Kind::param:
        return cat("(const unsigned char *)", facts_.inputs[b.index].name, more);
      case PlanBuffer::Kind::result:
        return cat("(unsigned char *)", facts_.outputs[b.index].name, more);
      case PlanBuffer::Kind::weight:
        return cat("model->weights + ", weights_.weights[b.index] + offset);
      case PlanBuffer::Kind::prepared:
        return cat("model->weights + ", weights_.prepared[b.index] + offset);
      case PlanBuffer::Kind::arena:
        return cat("memory + ", number(b.offset) + offset);
    }
    throw InternalError("buffer of an unknown kind");
  }

  void write_steps(const std::vector<Step>& steps) {
    for (const Step& s : steps) write_step(s);
  }

  void write_step(const Step& s) {
    switch (s.kind) {
      case Step::Kind::launch:
        return write_launch(s);
      case Step::Kind::copy:
        return write_copy(s.operands[0], s.operands[1]);
      case Step::Kind::branch:
        out_.open("if (*(const uint8_t *)(", place(s.operands[0]), ") != 0)");
        write_steps(s.body);
        out_.close(" else {");
        out_.indent();
        write_steps(s.otherwise);
        return out_.close();
      case Step::Kind::loop:
        out_.open("for (;;)");
        write_steps(s.otherwise);
        out_.line("if (*(const uint8_t *)(", place(s.operands[0]), ") == 0) break;");
        write_steps(s.body);
        return out_.close();
      case Step::Kind::call:
        return write_steps(s.body);
      case Step::Kind::record:
      case Step::Kind::wait:
        return;
      case Step::Kind::refuse:
        if (!s.scalars.empty() && number(s.scalars[0]) == number(s.scalars[1])) return;
        return out_.line("return ", refusal(s.name), ";");
      case Step::Kind::require:
        return out_.line("if (*(const int64_t *)(", place(s.operands[0]), ") != 0) return ",
                         refusal(cat(s.name, " is out of range, expected ", number(s.scalars[0]),
                                     " to ", number(s.scalars[1]))),
                         ";");
      default:
        throw InternalError("step ", s.name, " has no C");
    }
  }

  // The status code of a message.
  int refusal(std::string message) {
    facts_.refusals.push_back(std::move(message));
    return first_refusal + static_cast<int>(facts_.refusals.size()) - 1;
  }

  // The name of the kernel's function, which is written at first use.
  const std::string& entry(std::uint32_t index) {
    std::string& name = entries_[index];
    if (!name.empty()) return name;
    name = cat("k", index, "_", identifier(kernels_[index].name));
    module_.add(kernels_[index], name);
    return name;
  }

  // A kernel without result elements may also have empty operands.
  bool writes_elements(const Step& s) const {
    const auto is_zero = [&](const Dim& d) { return number(d) == 0; };
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      if (s.written[i] && std::ranges::none_of(s.operands[i].dims, is_zero)) return true;
    return false;
  }

  void write_launch(const Step& s) {
    if (number(s.chunks) == 0 || !writes_elements(s)) return;
    const Kernel& kernel = kernels_[s.index];
    std::vector<std::string> operands;
    for (const View& v : s.operands) operands.push_back(place(v));
    std::string sizes = "NULL";
    if (!kernel.sizes.empty()) {
      out_.open();
      std::string list;
      for (const Dim& d : s.scalars) list += cat(list.empty() ? "" : ", ", number(d));
      out_.line("const int64_t sizes[] = {", list, "};");
      sizes = "sizes";
    }
    out_.line(Module::call(kernel, entry(s.index), operands, "0", index(number(s.chunks)), scratch_,
                           sizes),
              ";");
    if (!kernel.sizes.empty()) out_.close();
  }

  void write_copy(const View& from, const View& to) {
    struct Axis {
      std::int64_t count, from, to;  // strides in bytes
    };
    const std::int64_t size = byte_size(from.dtype);
    std::vector<Axis> axes;
    for (std::size_t i = 0; i < from.dims.size(); ++i)
      if (number(from.dims[i]) != 1)
        axes.push_back(
            {number(from.dims[i]), number(from.strides[i]) * size, number(to.strides[i]) * size});
    for (const Axis& a : axes)
      if (a.count == 0) return;
    std::int64_t run = size;
    for (; !axes.empty() && axes.back().from == run && axes.back().to == run; axes.pop_back())
      run *= axes.back().count;
    std::string from_place = place(from), to_place = place(to);
    // A loop-carried value may already be in place; memcpy must not get overlapping memory.
    const bool stays = std::ranges::all_of(axes, [](const Axis& a) { return a.from == a.to; });
    if (stays && from_place == to_place) return;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      out_.open("for (int64_t i", i, " = 0; i", i, " < ", axes[i].count, "; ++i", i, ")");
      from_place += cat(" + i", i, " * ", axes[i].from);
      to_place += cat(" + i", i, " * ", axes[i].to);
    }
    out_.line("memcpy(", to_place, ", ", from_place, ", ", run, ");");
    for (std::size_t i = 0; i < axes.size(); ++i) out_.close();
  }

  const Plan& plan_;
  const Variant& variant_;
  std::span<const Kernel> kernels_;
  WeightsFile weights_;
  Module module_;
  ProgramFacts facts_;
  Text out_;  // body of the run function
  std::string scratch_;
  std::set<std::string> names_ = {"model", "arena", "memory", "sizes"};
  std::map<std::uint32_t, std::string> entries_;
};

}  // namespace

Program write_program(const Plan& plan, std::span<const Kernel> kernels,
                      const ProgramOptions& options) {
  Problems problems;
  check_sizes(plan, problems);
  for (const Variant& v : plan.main().variants) check_steps(v, problems);
  for (const PlanCheck& c : plan.main().checks)
    if (c.a.is_number() && c.b.is_number() && !(c.a == c.b)) problems.add(c.message);
  problems.throw_if_any(plan.name);
  HONE_ASSERT(kernels.size() == plan.kernels.size(), kernels.size(), " kernels for ",
              plan.kernels.size());
  return ProgramWriter(plan, only_variant(plan), kernels, options).write();
}

}  // namespace hone::c
