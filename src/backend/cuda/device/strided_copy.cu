// The source of strided_copy_ptx.cpp: one thread for each element, whose size is 1, 2, 4 or 8.
struct Copy {
  long long dims[8], to[8], from[8];  // strides in bytes
  long long count;
  int axes, element_bytes;
};

extern "C" __global__ void strided_copy(char* to, const char* from, const Copy c) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 1
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < c.count;
       i += step) {
    long long rest = i, a = 0, b = 0;
#pragma unroll 1
    for (int axis = c.axes - 1; axis >= 0; --axis) {
      const long long at = rest % c.dims[axis];
      rest /= c.dims[axis];
      a += at * c.to[axis];
      b += at * c.from[axis];
    }
    switch (c.element_bytes) {
      case 1:
        to[a] = from[b];
        break;
      case 2:
        *reinterpret_cast<short*>(to + a) = *reinterpret_cast<const short*>(from + b);
        break;
      case 4:
        *reinterpret_cast<int*>(to + a) = *reinterpret_cast<const int*>(from + b);
        break;
      default:
        *reinterpret_cast<long long*>(to + a) = *reinterpret_cast<const long long*>(from + b);
    }
  }
}
