// Copies elements of 1, 2, 4 or 8 bytes between two places with strides in bytes.
#version 460
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 64) in;
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Bytes { uint8_t at; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer Shorts { uint16_t at; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Words { uint32_t at; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Longs { uint64_t at; };
layout(buffer_reference, scalar) readonly buffer Arguments {
  uint64_t from, to;
  uint64_t count, element_bytes, rank;
  uint64_t dims[8], from_strides[8], to_strides[8];
};
layout(push_constant, scalar) uniform Pushed { Arguments arguments; };

void main() {
  const uint64_t step = uint64_t(gl_NumWorkGroups.x) * 64;
  for (uint64_t i = gl_GlobalInvocationID.x; i < arguments.count; i += step) {
    uint64_t from = arguments.from, to = arguments.to, rest = i;
    for (int d = int(arguments.rank) - 1; d >= 0; --d) {
      const uint64_t n = arguments.dims[d], at = rest % n;
      rest /= n;
      from += at * arguments.from_strides[d];
      to += at * arguments.to_strides[d];
    }
    if (arguments.element_bytes == 1)
      Bytes(to).at = Bytes(from).at;
    else if (arguments.element_bytes == 2)
      Shorts(to).at = Shorts(from).at;
    else if (arguments.element_bytes == 4)
      Words(to).at = Words(from).at;
    else
      Longs(to).at = Longs(from).at;
  }
}
