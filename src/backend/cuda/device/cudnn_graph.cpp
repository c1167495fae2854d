#include "backend/cuda/device/cudnn_graph.h"

#include <algorithm>
#include <array>
#include <bit>

#include "backend/cuda/device/cudnn_handles.h"

namespace hone::cudnn {

namespace {

// An engine's notes of one kind.
template <class Note>
std::vector<Note> notes_of(Body engine, Attribute a, ElementKind kind) {
  std::vector<Note> out(16);
  std::int64_t count = 0;
  check(library().get_attribute(engine, a, kind, std::ssize(out), &count, out.data()),
        "cudnnBackendGetAttribute");
  out.resize(static_cast<std::size_t>(count));
  return out;
}

// Less precise than requested, nondeterministic, or compiled at run time when not wanted.
bool is_unwanted(const Descriptor& config, const Wish& wish) {
  Descriptor engine(engine_kind);
  Body body = engine.body();
  std::int64_t ignored = 0;
  check(library().get_attribute(config.body(), config_engine, of_descriptor, 1, &ignored, &body),
        "cudnnBackendGetAttribute");
  const auto numbers = notes_of<NumericalNote>(body, engine_numerical_notes, of_numerical_note);
  const auto behavior = notes_of<BehaviorNote>(body, engine_behavior_notes, of_behavior_note);
  return std::ranges::any_of(
             numbers,
             [&](NumericalNote n) {
               return n == narrows_sums || n == nondeterministic ||
                      (!wish.may_round_to_tf32 && (n == narrows_inputs || n == uses_tensor_cores));
             }) ||
         (!wish.may_compile && std::ranges::count(behavior, compiles_at_run_time) > 0);
}

// In the library's order of proposals.
std::vector<Descriptor> configurations(const Descriptor& graph, const Wish& wish) {
  constexpr std::int64_t most = 32;
  Descriptor heuristics(engine_heuristics_kind);
  heuristics.set(heuristics_graph, graph);
  heuristics.set(heuristics_mode, of_heuristics_mode, decision_tree);
  heuristics.finalize("heuristics");
  std::vector<Descriptor> found;
  std::vector<Body> bodies;
  for (std::int64_t i = 0; i < most; ++i)
    bodies.push_back(found.emplace_back(engine_config_kind).body());
  std::int64_t count = 0;
  check(library().get_attribute(heuristics.body(), heuristics_results, of_descriptor, most, &count,
                                bodies.data()),
        "cudnnBackendGetAttribute");
  found.erase(found.begin() + count, found.end());
  std::erase_if(found, [&](const Descriptor& config) { return is_unwanted(config, wish); });
  return found;
}

class GraphCall final : public cuda::CudaCall {
 public:
  struct Argument {
    std::int64_t id;
    std::optional<std::size_t> operand;  // else a scalar
    std::int32_t bits;
  };

  GraphCall(std::shared_ptr<cuda::Context> context, Descriptor plan, std::vector<Descriptor> parts,
            std::vector<Argument> arguments, std::string name)
      : context_(std::move(context)),
        parts_(std::move(parts)),
        plan_(std::move(plan)),
        arguments_(std::move(arguments)),
        name_(std::move(name)) {
    std::int64_t bytes = 0, count = 0;
    check(library().get_attribute(plan_.body(), plan_workspace, of_int64, 1, &count, &bytes),
          "cudnnBackendGetAttribute");
    if (bytes > 0) workspace_ = context_->alloc(static_cast<std::size_t>(bytes));
  }
  ~GraphCall() override {
    if (workspace_) context_->free(workspace_);
  }

  void run(std::span<const CUdeviceptr> operands, CUstream stream) const override {
    std::vector<std::int64_t> ids;
    std::vector<const void*> pointers;
    for (const Argument& a : arguments_) {
      ids.push_back(a.id);
      pointers.push_back(a.operand ? reinterpret_cast<const void*>(operands[*a.operand]) : &a.bits);
      if (a.operand && operands[*a.operand] % graph_alignment != 0)
        throw UserError(name_, ": operand ", *a.operand, " does not start at a multiple of ",
                        graph_alignment, " bytes; compile the plan without this library");
    }
    Descriptor pack(variant_pack_kind);
    pack.set(pack_ids, ids);
    pack.set(pack_pointers, of_pointer, static_cast<std::int64_t>(pointers.size()),
             pointers.data());
    pack.set(pack_workspace, of_pointer, workspace_);
    pack.finalize("operands");
    check(library().execute(handle_of(*context_, stream), plan_.body(), pack.body()),
          "cudnnBackendExecute");
  }

 private:
  std::shared_ptr<cuda::Context> context_;
  std::vector<Descriptor> parts_;  // parts of the plan
  Descriptor plan_;
  std::vector<Argument> arguments_;
  CUdeviceptr workspace_ = 0;
  std::string name_;
};

}  // namespace

Descriptor::Descriptor(Kind kind) {
  check(library().create_descriptor(kind, &body_), "cudnnBackendCreateDescriptor");
}
Descriptor::~Descriptor() {
  if (body_) library().destroy_descriptor(body_);
}
void Descriptor::set(Attribute a, ElementKind kind, std::int64_t count, const void* values) {
  const Status s = library().set_attribute(body_, a, kind, count, values);
  if (s != success) check(s, cat("cudnnBackendSetAttribute of ", static_cast<int>(a)));
}
void Descriptor::finalize(std::string_view what) {
  const Status s = library().finalize(body_);
  if (s != success) check(s, cat("cudnnBackendFinalize of ", what));
}

Graph::Tensor Graph::add(const Layout& layout, DataType type, Place place) {
  Descriptor& d = tensors_.emplace_back(tensor_kind);
  const Tensor tensor = tensors_.size() - 1;
  places_.push_back(place);
  d.set(tensor_id, of_int64, static_cast<std::int64_t>(tensor + 1));
  d.set(tensor_type, of_data_type, type);
  d.set(tensor_alignment, of_int64, graph_alignment);
  d.set(tensor_dims, layout.dims);
  d.set(tensor_strides, layout.strides);
  const bool yes = true;
  if (place.kind == Place::between) d.set(tensor_is_virtual, of_bool, yes);
  if (place.kind == Place::scalar) d.set(tensor_is_by_value, of_bool, yes);
  d.finalize("a tensor");
  return tensor;
}

Graph::Tensor Graph::in_memory(std::size_t operand, const Layout& layout, DataType type) {
  return add(layout, type, {.kind = Place::memory, .operand = operand});
}
Graph::Tensor Graph::between(const Layout& layout, DataType type) {
  return add(layout, type, {.kind = Place::between});
}
Graph::Tensor Graph::scalar(float value, std::size_t rank) {
  const Sizes ones(rank, 1);
  return add({ones, ones}, r_32f,
             {.kind = Place::scalar, .bits = std::bit_cast<std::int32_t>(value)});
}
Graph::Tensor Graph::scalar(std::int32_t value, std::size_t rank) {
  const Sizes ones(rank, 1);
  return add({ones, ones}, r_32i, {.kind = Place::scalar, .bits = value});
}

void Graph::pointwise(Pointwise mode, const Operands& operands, Tensor y, DataType type,
                      std::optional<std::int64_t> axis) {
  Descriptor description(pointwise_kind);
  description.set(pointwise_mode, of_pointwise_mode, mode);
  description.set(pointwise_precision, of_data_type, type);
  if (axis) description.set(pointwise_axis, of_int64, *axis);
  description.finalize("a pointwise operation");
  Descriptor& d = operations_.emplace_back(operation_pointwise_kind);
  d.set(operation_pointwise_description, description);
  d.set(operation_pointwise_x, tensors_[operands.x]);
  if (operands.b) d.set(operation_pointwise_b, tensors_[*operands.b]);
  if (operands.t) d.set(operation_pointwise_t, tensors_[*operands.t]);
  d.set(operation_pointwise_y, tensors_[y]);
  d.finalize("a pointwise operation");
  parts_.push_back(std::move(description));
}

void Graph::multiply_matrices(Tensor a, Tensor b, Tensor y) {
  Descriptor description(matmul_kind);
  description.set(matmul_type, of_data_type, r_32f);
  description.finalize("a product");
  Descriptor& d = operations_.emplace_back(operation_matmul_kind);
  d.set(operation_matmul_description, description);
  d.set(operation_matmul_a, tensors_[a]);
  d.set(operation_matmul_b, tensors_[b]);
  d.set(operation_matmul_c, tensors_[y]);
  d.finalize("a product");
  parts_.push_back(std::move(description));
}

void Graph::reduce(Reduction op, Tensor x, Tensor y) {
  Descriptor description(reduction_kind);
  description.set(reduction_operator, of_reduction, op);
  description.set(reduction_type, of_data_type, r_32f);
  description.finalize("a reduction");
  Descriptor& d = operations_.emplace_back(operation_reduction_kind);
  d.set(operation_reduction_description, description);
  d.set(operation_reduction_x, tensors_[x]);
  d.set(operation_reduction_y, tensors_[y]);
  d.finalize("a reduction");
  parts_.push_back(std::move(description));
}

void Graph::convolve(Tensor x, Tensor w, Tensor y, const Window& window) {
  Descriptor description(convolution_kind);
  description.set(convolution_type, of_data_type, r_32f);
  description.set(convolution_mode, of_convolution_mode, cross_correlation);
  description.set(convolution_axes, of_int64, static_cast<std::int64_t>(window.strides.size()));
  description.set(convolution_strides, window.strides);
  description.set(convolution_dilations, window.dilations);
  description.set(convolution_pads_low, window.pads_low);
  description.set(convolution_pads_high, window.pads_high);
  description.finalize("a convolution");
  Descriptor& d = operations_.emplace_back(operation_convolution_kind);
  const float one = 1, zero = 0;
  d.set(operation_convolution_description, description);
  d.set(operation_convolution_x, tensors_[x]);
  d.set(operation_convolution_w, tensors_[w]);
  d.set(operation_convolution_y, tensors_[y]);
  d.set(operation_convolution_alpha, of_float, one);
  d.set(operation_convolution_beta, of_float, zero);
  d.finalize("a convolution");
  parts_.push_back(std::move(description));
}

std::unique_ptr<cuda::CudaCall> Graph::finish(std::string_view name, const Wish& wish) && {
  const BorrowedHandle handle(*context_);
  Descriptor graph(operation_graph_kind);
  std::vector<Body> bodies;
  for (const Descriptor& d : operations_) bodies.push_back(d.body());
  graph.set(graph_handle, of_handle, handle.get());
  graph.set(graph_operations, of_descriptor, static_cast<std::int64_t>(bodies.size()),
            bodies.data());
  graph.finalize("a graph");
  std::vector<Descriptor> found = configurations(graph, wish);
  if (wish.number >= static_cast<std::int64_t>(found.size()))
    throw UserError(name, ": the library has ", found.size(), " ways for these sizes, number ",
                    wish.number, " is asked for");
  Descriptor plan(execution_plan_kind);
  plan.set(plan_handle, of_handle, handle.get());
  plan.set(plan_config, found[static_cast<std::size_t>(wish.number)]);
  plan.finalize("a plan");
  std::vector<GraphCall::Argument> arguments;
  for (Tensor t = 0; t < tensors_.size(); ++t)
    if (const Place& p = places_[t]; p.kind != Place::between)
      arguments.push_back({static_cast<std::int64_t>(t + 1), p.operand, p.bits});
  for (std::vector<Descriptor>* list : {&tensors_, &operations_, &found})
    for (Descriptor& d : *list) parts_.push_back(std::move(d));
  parts_.push_back(std::move(graph));
  return std::make_unique<GraphCall>(context_, std::move(plan), std::move(parts_),
                                     std::move(arguments), std::string(name));
}

}  // namespace hone::cudnn
