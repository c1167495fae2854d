// Copies vectors of 16 bytes between two places.
#version 460
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 256) in;
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Vectors { uvec4 at; };
layout(push_constant, scalar) uniform Arguments { uint64_t from, to, count; };

void main() {
  const uint64_t step = uint64_t(gl_NumWorkGroups.x) * 256;
  for (uint64_t i = gl_GlobalInvocationID.x; i < count; i += step)
    Vectors(to + i * 16).at = Vectors(from + i * 16).at;
}
