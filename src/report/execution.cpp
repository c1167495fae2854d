#include "report/execution.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "backend/backend.h"
#include "plan/plan_text.h"
#include "report/number.h"
#include "runtime/memory_json.h"

namespace hone {

double bound_ms(double bytes, double flops, const MachineRates& rates) {
  double ms = rates.fma_gflops > 0 ? flops / rates.fma_gflops / 1e6 : 0;
  for (const MachineRates::Copy& copy : rates.copies)
    if (bytes <= static_cast<double>(copy.bytes) * rates.threads || &copy == &rates.copies.back())
      return std::max(ms, bytes / copy.gbytes / 1e6);
  return ms;
}

namespace {

// Assembly is left out of kernels that take little time when all of it would be longer.
constexpr std::size_t most_assembly = 400'000;

// Removes lines that only an assembler needs.
std::string without_directives(const std::string& assembly) {
  std::string out;
  for (std::size_t at = 0; at < assembly.size();) {
    const std::size_t end = std::min(assembly.find('\n', at), assembly.size());
    const std::string_view line = std::string_view(assembly).substr(at, end - at);
    at = end + 1;
    const bool is_data = line.starts_with("\t.long") || line.starts_with("\t.quad") ||
                         line.starts_with("\t.zero") || line.starts_with("\t.byte");
    if (line.empty() || (line.starts_with("\t.") && !is_data)) continue;
    out.append(line).append("\n");
  }
  return out;
}

// One variant, its profile, and what its compilation kept.
class ExecutionWriter {
 public:
  ExecutionWriter(const Plan& plan, const Profile& profile, const CompileReport* compiled)
      : plan_(plan),
        profile_(profile),
        compiled_(compiled && !compiled->variants.empty() ? compiled : nullptr),
        variant_(plan.main().variants[profile.variant]),
        group_ms_(variant_.groups.size()) {
    for_each_step(variant_.steps, [&](const Step& s) {
      if (s.group != Step::no_group) {
        const Interval& ms = profile_.steps[steps_.size()].ms;
        Interval& sum = group_ms_[s.group];
        sum = {sum.median + ms.median, sum.low + ms.low, sum.high + ms.high};
        groups_run_.insert(s.group);
      }
      steps_.push_back(&s);
    });
  }

  Json run() {
    return Json::Object{{"variant", profile_.variant},
                        {"target", variant_.devices[0].target},
                        {"guards", guards()},
                        {"sizes", sizes()},
                        {"threads", profile_.threads},
                        {"runs", profile_.runs},
                        {"run_ms", rounded(profile_.run_ms)},
                        {"groups", groups()},
                        {"steps", step_list()},
                        {"kernels", kernels()},
                        {"timeline", timeline()},
                        {"timeline_is_cut", profile_.timeline_is_cut},
                        {"memory", memory()},
                        {"rates", rates()}};
  }

 private:
  Json guards() const {
    Json out = Json::Array{};
    for (const Guard& g : variant_.guards) out.push(guard_text(g));
    return out;
  }

  Json sizes() const {
    std::map<std::string, std::int64_t> sorted(profile_.sizes.begin(), profile_.sizes.end());
    Json out = Json::Object{};
    for (const auto& [name, value] : sorted) out.add(name, value);
    return out;
  }

  Json groups() const {
    Json out = Json::Array{};
    for (std::uint32_t g : groups_run_) out.push(group(g));
    return out;
  }

  Json group(std::uint32_t g) const {
    const GroupRecord& record = variant_.groups[g];
    const Json bytes = known_size(record.bytes, profile_.sizes),
               flops = known_size(record.flops, profile_.sizes);
    Json bound;
    if (!bytes.is_null() && !flops.is_null() && profile_.rates.threads > 0)
      bound = rounded(bound_ms(bytes.real(), flops.real(), profile_.rates));
    Json candidates = Json::Array{};
    for (const CandidateRecord& c : record.candidates())
      candidates.push(Json::Object{{"name", c.name},
                                   {"ms", interval({c.ms, c.low, c.high})},
                                   {"error", rounded(c.error)},
                                   {"refused", c.refused}});
    Json steps = Json::Array{};
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i]->group == g) steps.push(i);
    return Json::Object{{"group", g},
                        {"name", record.name},
                        {"origins", record.origins},
                        {"chosen", record.chosen},
                        {"reason", record.reason},
                        {"bytes", bytes},
                        {"flops", flops},
                        {"ms", interval(group_ms_[g])},
                        {"bound_ms", bound},
                        {"candidates", candidates},
                        {"steps", steps},
                        {"nodes", nodes(g)}};
  }

  // Places in the last stage of the graphs.
  Json nodes(std::uint32_t g) const {
    if (!compiled_) return {};
    const VariantReport& v = compiled_->variants[profile_.variant];
    const Function* last = &v.imported;
    for (const PassRecord& r : v.passes)
      if (r.changed && r.after) last = &*r.after;
    if (places_.empty()) {
      places_.assign(last->graph().node_count(), 0);
      std::int64_t next = 0;
      for (NodeId n : live_nodes(*last)) places_[n] = next++;
    }
    Json out = Json::Array{};
    for (NodeId n : v.groups[g]) out.push(places_[n]);
    return out;
  }

  Json step_list() const {
    Json out = Json::Array{};
    std::size_t next = 0;
    add_steps(variant_.steps, 0, next, out);
    return out;
  }

  void add_steps(const std::vector<Step>& steps, int depth, std::size_t& next, Json& out) const {
    for (const Step& s : steps) {
      const Profile::Step& timed = profile_.steps[next++];
      const bool is_launch = s.kind == Step::Kind::launch, has_group = s.group != Step::no_group;
      out.push(Json::Object{{"kind", name_of(s.kind)},
                            {"name", s.name},
                            {"depth", depth},
                            {"group", has_group ? Json(s.group) : Json()},
                            {"kernel", is_launch ? Json(s.index) : Json()},
                            {"chunks", is_launch ? known_size(s.chunks, profile_.sizes) : Json()},
                            {"ms", interval(timed.ms)},
                            {"calls", timed.calls},
                            {"operands", operands(s)},
                            {"settings", settings(s)}});
      add_steps(s.body, depth + 1, next, out);
      add_steps(s.otherwise, depth + 1, next, out);
    }
  }

  // [place, type, written]
  Json operands(const Step& s) const {
    Json out = Json::Array{};
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      const View& v = s.operands[i];
      const PlanBuffer& b = variant_.buffers[v.buffer];
      std::string place = cat(name_of(b.kind), " ", v.buffer);
      if (b.kind == PlanBuffer::Kind::param)
        place = "input '" + plan_.main().params[b.index].name + "'";
      if (b.kind == PlanBuffer::Kind::result)
        place = "output '" + plan_.main().results[b.index].name + "'";
      out.push(Json::Array{place, cat(Type(v.dtype, Shape(v.dims))),
                           i < s.written.size() && s.written[i]});
    }
    return out;
  }

  static Json settings(const Step& s) {
    Json out = Json::Object{};
    for (const auto& [name, value] : s.settings) out.add(name, value);
    return out;
  }

  // By time, so that assembly is there for those that matter.
  Json kernels() const {
    std::map<std::uint32_t, double> times;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i]->kind == Step::Kind::launch)
        times[steps_[i]->index] += profile_.steps[i].ms.median;
    std::vector<std::uint32_t> order;
    for (const auto& [kernel, ms] : times) order.push_back(kernel);
    std::ranges::stable_sort(order, std::greater(), [&](std::uint32_t k) { return times[k]; });
    Json out = Json::Array{};
    std::size_t assembly_bytes = 0;
    for (std::uint32_t k : order) {
      const PlanKernel& kernel = plan_.kernels[k];
      Json entry = Json::Object{{"kernel", k}, {"hash", to_hex(kernel.hash)}};
      if (compiled_)
        add_sources(compiled_->kernels_made.at(k), kernel.entry, assembly_bytes, entry);
      out.push(std::move(entry));
    }
    return out;
  }

  void add_sources(const Kernel& kernel, const std::string& entry, std::size_t& assembly_bytes,
                   Json& out) const {
    out.add("name", kernel.name);
    out.add("source", print(kernel));
    if (assembly_bytes >= most_assembly) return;
    std::string assembly = without_directives(target().list({&kernel, entry}).assembly);
    if (assembly_bytes + assembly.size() > most_assembly) return;
    assembly_bytes += assembly.size();
    out.add("assembly", std::move(assembly));
  }

  const Target& target() const {
    const PlanDevice& device = variant_.devices[0];
    const Backend& made_by = device.name.empty() ? default_backend() : backend(device.name);
    if (!target_) target_ = made_by.target(device.target);
    return *target_;
  }

  // [step, start, microseconds]
  Json timeline() const {
    Json out = Json::Array{};
    for (const Profile::Event& e : profile_.timeline)
      out.push(Json::Array{e.step, rounded(e.start_us), rounded(e.us)});
    return out;
  }

  Json memory() const {
    const std::vector<BufferLife> lives = buffer_lives(variant_, profile_.sizes);
    Json buffers = Json::Array{}, live = Json::Array{};
    for (const BufferLife& l : lives)
      buffers.push(Json::Array{l.buffer, l.offset, l.bytes, l.first, l.last});
    for (std::int64_t bytes : live_bytes(lives, steps_.size())) live.push(bytes);
    Json out = to_json(profile_.memory);
    out.add("buffers", std::move(buffers));
    out.add("live", std::move(live));
    return out;
  }

  Json rates() const {
    Json copies = Json::Array{};
    for (const MachineRates::Copy& c : profile_.rates.copies)
      copies.push(Json::Array{c.bytes, rounded(c.gbytes)});
    return Json::Object{{"threads", profile_.rates.threads},
                        {"fma_gflops", rounded(profile_.rates.fma_gflops)},
                        {"copies", copies}};
  }

  const Plan& plan_;
  const Profile& profile_;
  const CompileReport* compiled_;
  const Variant& variant_;
  std::vector<const Step*> steps_;
  std::vector<Interval> group_ms_;
  std::set<std::uint32_t> groups_run_;
  mutable std::vector<std::int64_t> places_;
  mutable std::unique_ptr<Target> target_;
};

}  // namespace

Json execution_json(const Plan& plan, const Profile& profile, const CompileReport* compiled) {
  return ExecutionWriter(plan, profile, compiled).run();
}

}  // namespace hone
