// Inner values by their ONNX names: every inner value of a real model can be requested, whatever
// the compiler does with it, and equals the reference.
#include <set>

#include "base/file.h"
#include "import/onnx/file/model.h"
#include "test/compile/models.h"
#include "verify/sizes.h"

namespace hone {
namespace {

using namespace test;

struct Names {
  std::vector<std::string> outer, inner;  // of the graph, and of the bodies in it
};

void collect(const onnx::Graph& g, bool in_body, Names& out, std::set<std::string>& seen) {
  for (const onnx::Node& n : g.nodes) {
    for (std::string_view name : n.outputs)
      if (!name.empty() && seen.emplace(name).second)
        (in_body ? out.inner : out.outer).emplace_back(name);
    for (const onnx::Attribute& a : n.attributes)
      if (a.graph) collect(*a.graph, true, out, seen);
  }
}

Source dumping(const std::string& model, const std::vector<std::string>& names) {
  ImportOptions options;
  options.dump = names;
  return test::source_of(models_root() / model / "model.onnx", options);
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "nothing was refused";
}

// Exporters leave branches that fit no sizes. Names refused for that reason are left out.
void keep_reached(const std::string& model, std::vector<std::string>& names) {
  for (;;) {
    const std::string message = message_of([&] { dumping(model, names); });
    const auto unreached = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      return message.find(cat("dump: '", name, "' is computed only in a branch that is never")) !=
             std::string::npos;
    });
    if (unreached == names.end()) return;
    names.erase(unreached);
  }
}

Names names_of(const std::string& model) {
  const auto file = MappedFile::open(models_root() / model / "model.onnx");
  const onnx::Model parsed = onnx::parse_model(file->bytes(), file->path(), 1'000'000);
  Names out;
  std::set<std::string> seen;
  collect(*parsed.graph, false, out, seen);
  keep_reached(model, out.inner);
  return out;
}

const Function& function_for(const Source& source, const std::vector<Array>& inputs) {
  std::vector<std::vector<std::int64_t>> dims;
  for (const Array& a : inputs) dims.push_back(a.dims());
  for (const SourceVariant& v : source.variants)
    if (guards_hold(v.guards, bind_sizes(v.function, dims))) return v.function;
  throw UserError("no variant serves these sizes");
}

class Dump : public ::testing::TestWithParam<std::string> {
 protected:
  EmptyCache cache_;
};

TEST_P(Dump, GivesEveryInnerValueAsTheReferenceDoes) {
  const Names names = names_of(GetParam());
  std::vector<std::string> all = names.outer;
  all.insert(all.end(), names.inner.begin(), names.inner.end());
  const Source source = dumping(GetParam(), all);
  auto plan = std::make_shared<const Plan>(
      compile(source, {.strategy = "cpu", .verification = Verification::none}));
  const std::unique_ptr<Session> session = session_of(plan);
  std::set<std::string> computed;
  for (const TestSet& set : test_sets(GetParam())) {
    const Function& f = function_for(source, set.inputs);
    const std::vector<Wide> strict = evaluate_wide(f, set.inputs, Mode::stepwise),
                            wide = evaluate_wide(f, set.inputs, Mode::wide);
    const std::vector<Array> got = session->run(set.inputs);
    ASSERT_EQ(got.size(), wide.size());
    ASSERT_GE(got.size(), set.outputs.size() + all.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::string& name = f.results()[i].name;
      const Comparison c = accept(got[i], strict[i], wide[i]);
      EXPECT_TRUE(c.ok) << name << ": " << c;
      const bool is_flag = name.ends_with(dump_flag);
      const bool has_flag =
          !is_flag && i + 1 < got.size() && f.results()[i + 1].name == cat(name, dump_flag);
      if (!is_flag && (!has_flag || got[i + 1].integer(0) != 0)) computed.insert(name);
    }
  }
  for (const std::string& name : all) EXPECT_TRUE(computed.contains(name)) << name;
}

INSTANTIATE_TEST_SUITE_P(Real, Dump, ::testing::ValuesIn(model_names()),
                         [](const auto& info) { return info.param; });

TEST(DumpOfBranches, TellsWhetherTheBranchWasTaken) {
  EmptyCache cache;
  const Names names = names_of("silero_vad");
  ASSERT_FALSE(names.inner.empty());
  // The model serves two rates with an If: a value that only one branch computes is absent at the
  // other rate.
  const Source source = dumping("silero_vad", names.inner);
  const std::unique_ptr<Session> session = session_of(std::make_shared<const Plan>(
      compile(source, {.strategy = "cpu", .verification = Verification::none})));
  std::set<std::set<std::string>> kinds;
  for (const TestSet& set : test_sets("silero_vad")) {
    const std::vector<Array> got = session->run(set.inputs);
    std::set<std::string> computed;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::string& name = session->executable().plan().main().results[i].name;
      if (!name.ends_with(dump_flag)) continue;
      if (got[i].integer(0) != 0) {
        computed.insert(name);
        continue;
      }
      for (std::int64_t k = 0; k < got[i - 1].count(); ++k) ASSERT_EQ(got[i - 1].real(k), 0);
    }
    kinds.insert(computed);
  }
  EXPECT_EQ(kinds.size(), 2u);
}

TEST(DumpOfBranches, AnUnknownNameListsNearOnes) {
  const std::string name = names_of("ultraface_rfb_320").outer.at(3);
  std::string wrong = name;
  wrong.back() = '#';
  const std::string message = message_of([&] { dumping("ultraface_rfb_320", {wrong}); });
  EXPECT_NE(message.find(cat("no value '", wrong, "'; similar names are ")), std::string::npos)
      << message;
  EXPECT_NE(message.find(cat("'", name, "'")), std::string::npos) << message;
  const std::string inner = names_of("silero_vad").inner.at(3);
  EXPECT_NE(message_of([&] { dumping("silero_vad", {inner + "x"}); }).find(cat("'", inner, "'")),
            std::string::npos);
}

}  // namespace
}  // namespace hone
