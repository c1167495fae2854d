// Models with wrong names, order, opsets, bodies or functions, or whose functions grow when
// inlined.
#include "test/hostile/hostile.h"

namespace hone::hostile {

namespace {

void relu_model(ModelBuilder& b) {
  b.input("x", DType::f32, {"2"});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
}

// relu_model with a change applied.
Make changed(std::function<void(ModelBuilder&)> change) {
  return model([change](ModelBuilder& b) {
    relu_model(b);
    change(b);
  });
}

onnx_pb::Function& add_function(ModelBuilder& b, const std::string& name) {
  onnx_pb::Function* f = b.model.add_functions();
  f->set_name(name);
  f->set_domain("local");
  f->add_input("a");
  f->add_output("b");
  onnx_pb::Opset* o = f->add_opset_import();
  o->set_domain("");
  o->set_version(21);
  onnx_pb::Opset* l = f->add_opset_import();
  l->set_domain("local");
  l->set_version(1);
  return *f;
}

onnx_pb::Node& add_call(onnx_pb::Function& f, const std::string& op, const std::string& in,
                        const std::string& out, const std::string& domain = "local") {
  onnx_pb::Node* n = f.add_node();
  n->set_op_type(op);
  n->set_domain(domain);
  n->add_input(in);
  n->add_output(out);
  return *n;
}

void use_function(ModelBuilder& b, const std::string& name) {
  b.input("x", DType::f32, {"2"});
  b.node(name, {"x"}, {"y"}).set_domain("local");
  onnx_pb::Opset* o = b.model.add_opset_import();
  o->set_domain("local");
  o->set_version(1);
  b.output("y");
}

// f0 calls f1 twice, f1 calls f2 twice, ...: 2^levels nodes when they are inlined.
void doubling_functions(ModelBuilder& b, int levels) {
  use_function(b, "f0");
  for (int i = 0; i < levels; ++i) {
    onnx_pb::Function& f = add_function(b, cat("f", i));
    const std::string inner = i + 1 < levels ? cat("f", i + 1) : "Relu";
    const char* domain = i + 1 < levels ? "local" : "";
    add_call(f, inner, "a", "c", domain);
    add_call(f, inner, "c", "b", domain);
  }
}

// The same without nodes that compute: only calls, or nothing at all.
void doubling_to_nothing(ModelBuilder& b, int levels) {
  use_function(b, "f0");
  for (int i = 0; i < levels; ++i) {
    onnx_pb::Function& f = add_function(b, cat("f", i));
    if (i + 1 == levels) {
      f.set_output(0, "a");
      continue;
    }
    add_call(f, cat("f", i + 1), "a", "c");
    add_call(f, cat("f", i + 1), "c", "b");
  }
}

// Calls nested `levels` deep.
void function_chain(ModelBuilder& b, int levels) {
  use_function(b, "f0");
  for (int i = 0; i < levels; ++i) {
    onnx_pb::Function& f = add_function(b, cat("f", i));
    add_call(f, i + 1 < levels ? cat("f", i + 1) : "Relu", "a", "b", i + 1 < levels ? "local" : "");
  }
}

void fill_branch(onnx_pb::Graph& g, int levels) {
  g.add_output()->set_name("r");
  if (levels == 0) {
    ModelBuilder::add(g, "Relu", {"x"}, {"r"});
    return;
  }
  onnx_pb::Node& n = ModelBuilder::add(g, "If", {"c"}, {"r"});
  fill_branch(set_graph(n, "then_branch"), levels - 1);
  onnx_pb::Graph& other = set_graph(n, "else_branch");
  ModelBuilder::add(other, "Neg", {"x"}, {"s"});
  other.add_output()->set_name("s");
}

void nested_if(ModelBuilder& b, int levels) {
  b.input("x", DType::f32, {"2"});
  b.input("c", DType::b1, {});
  onnx_pb::Node& n = b.node("If", {"c"}, {"y"});
  fill_branch(set_graph(n, "then_branch"), levels - 1);
  fill_branch(set_graph(n, "else_branch"), 0);
  b.output("y");
}

// Nodes in reverse order: each needs the one after it.
void reversed_chain(ModelBuilder& b, int count) {
  b.input("x0", DType::f32, {"2"});
  for (int i = count; i > 0; --i) b.node("Relu", {cat("x", i - 1)}, {cat("x", i)});
  b.output(cat("x", count));
}

// Valid and long: nothing may recurse along it.
void chain(ModelBuilder& b, int count) {
  b.input("x0", DType::f32, {"2"});
  for (int i = 0; i < count; ++i) b.node("Sin", {cat("x", i)}, {cat("x", i + 1)});
  b.output(cat("x", count));
}

void ring(ModelBuilder& b, int count) {
  for (int i = 0; i < count; ++i) b.node("Relu", {cat("x", i)}, {cat("x", (i + 1) % count)});
  b.output("x0");
}

// `count` values whose rank depends on a size.
void questions(ModelBuilder& b, int count) {
  for (int i = 0; i < count; ++i) {
    b.input(cat("x", i), DType::f32, {cat("n", i), "3"});
    b.node("Squeeze", {cat("x", i)}, {cat("y", i)});
    b.output(cat("y", i));
  }
}

std::string long_name() { return std::string(10'000'000, 'n'); }

}  // namespace

Cases graph_cases() {
  return {
      {"self_loop", changed([](ModelBuilder& b) { b.node("Relu", {"z"}, {"z"}); }), imported,
       "is the node's own result: the graph has a cycle"},
      {"cycle_of_3", model([](ModelBuilder& b) { ring(b, 3); }), imported, "is part of a cycle"},
      {"cycle_of_50000", model([](ModelBuilder& b) { ring(b, 50'000); }), imported,
       "is part of a cycle"},
      {"chain_100000", model([](ModelBuilder& b) { chain(b, 100'000); }), imported,
       "read: 1 variants, 100001 nodes"},
      {"reversed_20000", model([](ModelBuilder& b) { reversed_chain(b, 20'000); }), imported,
       "read: 1 variants, 20001 nodes"},
      {"undefined_50000", model([](ModelBuilder& b) {
         for (int i = 0; i < 50'000; ++i) b.node("Relu", {cat("u", i)}, {cat("y", i)});
         b.output("y0");
       }),
       imported, "is not computed by any node and is not an input or initializer"},
      {"name_twice", changed([](ModelBuilder& b) { b.node("Neg", {"x"}, {"y"}); }), imported,
       "value 'y' is defined twice"},
      {"name_of_input_twice", changed([](ModelBuilder& b) { b.input("x", DType::f32, {"2"}); }),
       imported, "defined twice"},
      {"initializer_twice", changed([](ModelBuilder& b) {
         b.constant("w", reals({1}, {1}));
         b.constant("w", reals({1}, {2}));
       }),
       imported, "'w' is defined twice"},
      {"output_twice", changed([](ModelBuilder& b) { b.output("y"); }), imported, "read: "},
      {"output_undefined", changed([](ModelBuilder& b) { b.output("nothing"); }), imported,
       "graph output 'nothing' is not computed by any node"},
      {"output_without_name", changed([](ModelBuilder& b) { b.output(""); }), imported,
       "refused: "},
      {"no_outputs", model([](ModelBuilder& b) {
         b.input("x", DType::f32, {"2"});
         b.node("Relu", {"x"}, {"y"});
       }),
       imported, "the graph has no outputs, so the model computes nothing"},
      {"empty_graph", model([](ModelBuilder& b) { b.model.mutable_graph(); }), imported,
       "the graph has no outputs, so the model computes nothing"},
      {"no_graph", model([](ModelBuilder&) {}), imported,
       "contains no graph; is it an ONNX model?"},
      {"node_without_operator", changed([](ModelBuilder& b) { b.node("", {"x"}, {"z"}); }),
       imported, "not supported"},
      {"node_of_nothing", changed([](ModelBuilder& b) { b.model.mutable_graph()->add_node(); }),
       imported, "not supported"},
      {"operator_unknown", changed([](ModelBuilder& b) { b.node("Rleu", {"x"}, {"z"}); }), imported,
       "nearest supported: Relu"},
      {"operator_of_long_name",
       changed([](ModelBuilder& b) { b.node(std::string(1'000'000, 'a'), {"x"}, {"z"}); }),
       imported, "not supported"},
      {"operators_unknown_20000", changed([](ModelBuilder& b) {
         for (int i = 0; i < 20'000; ++i) b.node(cat("Operator", i), {"x"}, {cat("z", i)});
       }),
       imported, "20000 parts of the model are not supported"},
      {"domain_unknown",
       changed([](ModelBuilder& b) { b.node("Relu", {"x"}, {"z"}).set_domain("com.example"); }),
       imported, "Relu of com.example opset 0"},
      {"library_named_in_model", changed([](ModelBuilder& b) {
         set_text(b.node("PyOp", {"x"}, {"z"}), "library", "/tmp/evil.so");
       }),
       imported, "not supported"},
      {"opset_1000", model(relu_model, 1000), imported, "uses opset 1000, expected at most"},
      {"opset_0", model(relu_model, 0), imported, "refused: "},
      {"opset_negative", model(relu_model, -7), imported, "refused: "},
      {"opset_missing", changed([](ModelBuilder& b) { b.model.clear_opset_import(); }), imported,
       "refused: "},
      {"opset_most", model(relu_model, std::numeric_limits<std::int64_t>::max()), imported,
       "expected at most 28"},
      {"attribute_of_other_type",
       changed([](ModelBuilder& b) { set_text(b.node("Softmax", {"x"}, {"z"}), "axis", "one"); }),
       imported, "refused: "},
      {"attribute_twice", changed([](ModelBuilder& b) {
         onnx_pb::Node& n = b.node("Softmax", {"x"}, {"z"});
         set_int(n, "axis", 0);
         set_int(n, "axis", 7);
       }),
       imported, "refused: "},
      {"attribute_without_name",
       changed([](ModelBuilder& b) { set_int(b.node("Softmax", {"x"}, {"z"}), "", 0); }), imported,
       "refused: "},
      {"attribute_refers_to_nothing", changed([](ModelBuilder& b) {
         onnx_pb::Node& n = b.node("Softmax", {"x"}, {"z"});
         set_int(n, "axis", 0);
         n.mutable_attribute(0)->set_ref_attr_name("nothing");
       }),
       imported, "read: "},
      {"attribute_refers_to_itself", model([](ModelBuilder& b) {
         use_function(b, "f0");
         onnx_pb::Function& f = add_function(b, "f0");
         set_int(add_call(f, "Softmax", "a", "b", ""), "axis", 0);
         f.mutable_node(0)->mutable_attribute(0)->set_ref_attr_name("axis");
         f.add_attribute("axis");
       }),
       imported, "read: "},
      {"too_many_operands", changed([](ModelBuilder& b) {
         b.node("Relu", std::vector<std::string>(10'000, "x"), {"z"});
       }),
       imported, "input 1 (value 'x') does not exist in opset"},
      {"no_operands", changed([](ModelBuilder& b) { b.node("Conv", {}, {"z"}); }), imported,
       "refused: "},
      {"too_many_results", changed([](ModelBuilder& b) {
         std::vector<std::string> names;
         for (int i = 0; i < 10'000; ++i) names.push_back(cat("z", i));
         b.node("Relu", {"x"}, names);
       }),
       imported, "refused: "},
      {"name_with_zero_byte", changed([](ModelBuilder& b) {
         b.node("Neg", {"x"}, {std::string("a\0b", 3)});
         b.output(std::string("a\0b", 3));
       }),
       imported, "read: "},
      {"name_with_newline_and_escape",
       changed([](ModelBuilder& b) { b.node("Nothing\n\x1b[2J", {"x"}, {"a\nb"}); }), imported,
       "not supported"},
      {"name_of_10_mb", model([](ModelBuilder& b) {
         b.input("x", DType::f32, {"2"});
         b.node("Relu", {"x"}, {long_name()});
         b.output(long_name());
       }),
       imported, "read: "},
      {"symbol_of_1_mb", model([](ModelBuilder& b) {
         b.input("x", DType::f32, {std::string(1'000'000, 's')});
         b.node("Relu", {"x"}, {"y"});
         b.output("y");
       }),
       imported, "read: "},
      {"input_negative_dim", changed([](ModelBuilder& b) {
         b.model.mutable_graph()
             ->mutable_input(0)
             ->mutable_type()
             ->mutable_tensor_type()
             ->mutable_shape()
             ->mutable_dim(0)
             ->set_dim_value(-3);
       }),
       imported, "read: "},
      {"input_of_2_80_elements", model([](ModelBuilder& b) {
         b.input("x", DType::f32, {"1099511627776", "1099511627776"});
         b.node("Relu", {"x"}, {"y"});
         b.output("y");
       }),
       imported, "does not fit in 64 bits"},
      {"input_of_10000_axes", model([](ModelBuilder& b) {
         b.input("x", DType::f32, std::vector<std::string>(10'000, "1"));
         b.node("Relu", {"x"}, {"y"});
         b.output("y");
       }),
       imported, "read: "},
      {"input_without_type",
       changed([](ModelBuilder& b) { b.model.mutable_graph()->add_input()->set_name("untyped"); }),
       imported, "refused: "},
      {"input_of_unknown_type", changed([](ModelBuilder& b) {
         b.model.mutable_graph()
             ->mutable_input(0)
             ->mutable_type()
             ->mutable_tensor_type()
             ->set_elem_type(77);
       }),
       imported, "refused: "},
      {"input_is_map", changed([](ModelBuilder& b) {
         b.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_map_type();
       }),
       imported, "refused: "},
      {"inputs_50000", model([](ModelBuilder& b) {
         for (int i = 0; i < 50'000; ++i) b.input(cat("x", i), DType::f32, {cat("n", i)});
         b.node("Relu", {"x0"}, {"y"});
         b.output("y");
       }),
       imported, "read: "},
      {"initializers_empty_100000", changed([](ModelBuilder& b) {
         for (int i = 0; i < 100'000; ++i) {
           onnx_pb::Tensor* t = b.model.mutable_graph()->add_initializer();
           t->set_name(cat("w", i));
           t->set_data_type(1);
           t->add_dims(0);
         }
       }),
       imported, "read: "},
      {"nested_if_10", model([](ModelBuilder& b) { nested_if(b, 10); }), imported, "read: "},
      {"nested_if_18", model([](ModelBuilder& b) { nested_if(b, 18); }), imported, "read: "},
      {"nested_if_18_runs", model([](ModelBuilder& b) { nested_if(b, 18); }), ran, "ran: "},
      {"nested_if_40", model([](ModelBuilder& b) { nested_if(b, 30); }), imported,
       "messages are nested more than 64 levels deep"},
      {"if_without_branches", changed([](ModelBuilder& b) {
         b.input("c", DType::b1, {});
         b.node("If", {"c"}, {"z"});
       }),
       imported, "refused: "},
      {"if_branch_is_its_own_operand", changed([](ModelBuilder& b) {
         b.input("c", DType::b1, {});
         onnx_pb::Node& n = b.node("If", {"c"}, {"z"});
         set_graph(n, "then_branch").add_output()->set_name("z");
         set_graph(n, "else_branch").add_output()->set_name("x");
         b.output("z");
       }),
       imported, "read: "},
      {"function_calls_itself", model([](ModelBuilder& b) {
         use_function(b, "f");
         add_call(add_function(b, "f"), "f", "a", "b");
       }),
       imported, "does one call itself?"},
      {"functions_call_each_other", model([](ModelBuilder& b) {
         use_function(b, "f");
         add_call(add_function(b, "f"), "g", "a", "b");
         add_call(add_function(b, "g"), "f", "a", "b");
       }),
       imported, "does one call itself?"},
      {"function_calls_itself_twice", model([](ModelBuilder& b) {
         use_function(b, "f");
         onnx_pb::Function& f = add_function(b, "f");
         add_call(f, "f", "a", "c");
         add_call(f, "f", "a", "b");
       }),
       imported, "does one call itself?"},
      {"functions_2_40", model([](ModelBuilder& b) { doubling_functions(b, 40); }), imported,
       "the model has more than 1000000 nodes with its functions expanded"},
      {"functions_2_40_of_nothing", model([](ModelBuilder& b) { doubling_to_nothing(b, 40); }),
       imported, "the model has more than 1000000 nodes with its functions expanded"},
      {"functions_nested_60", model([](ModelBuilder& b) { function_chain(b, 60); }), imported,
       "read: "},
      {"functions_nested_100", model([](ModelBuilder& b) { function_chain(b, 100); }), imported,
       "nested more than 64 deep"},
      {"function_twice", model([](ModelBuilder& b) {
         use_function(b, "f");
         add_call(add_function(b, "f"), "Relu", "a", "b", "");
         add_call(add_function(b, "f"), "Neg", "a", "b", "");
       }),
       imported, "function 'f' of domain 'local' appears twice"},
      {"functions_of_one_name_20000", model([](ModelBuilder& b) {
         use_function(b, "f");
         for (int i = 0; i < 20'000; ++i) {
           onnx_pb::Function& f = add_function(b, "f");
           f.set_overload(cat(i));
           add_call(f, "Relu", "a", "b", "");
         }
         for (int i = 0; i < 20'000; ++i) {
           onnx_pb::Node& n = b.node("f", {"x"}, {cat("z", i)});
           n.set_domain("local");
           n.set_overload(cat(19'999));
         }
       }),
       imported, "not supported"},
      {"function_without_output", model([](ModelBuilder& b) {
         use_function(b, "f");
         add_call(add_function(b, "f"), "Relu", "a", "elsewhere", "");
       }),
       imported, "refused: "},
      {"function_without_outputs", model([](ModelBuilder& b) {
         use_function(b, "f");
         onnx_pb::Function& f = add_function(b, "f");
         f.clear_output();
         add_call(f, "Relu", "a", "b", "");
         b.model.mutable_graph()->mutable_node(0)->clear_output();
         b.node("Relu", {"x"}, {"y"});
         b.output("y");
       }),
       imported, "its function has no outputs, so the call computes nothing"},
      {"function_given_too_much", model([](ModelBuilder& b) {
         use_function(b, "f");
         add_call(add_function(b, "f"), "Relu", "a", "b", "");
         b.model.mutable_graph()->mutable_node(0)->add_input("x");
       }),
       imported, "the node has 2 inputs, but its function takes 1"},
      {"sizes_decide_40_times", model([](ModelBuilder& b) { questions(b, 40); }), imported,
       "the model would need more than 16 variants"},
  };
}

}  // namespace hone::hostile
