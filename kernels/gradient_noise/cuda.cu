// gradient_noise: what is to be added to a gradient, element by element; formulas in the cpu backend's
// gradient_noise.cpp. Normal numbers are made in f64 and rounded to f32, so that they agree
// with the cpu backend's.
//
// Determinism: elements are independent.
#include <mulligan/cuda/elements.cuh>
#include <mulligan/cuda/philox.cuh>

MLG_CONST_INT(mode)

__device__ inline double cosine_of_turns(double turns) {
#ifdef __CUDACC__
  return cospi(2.0 * turns);  // cos() would keep a table of digits of pi on the stack
#else
  return std::cos(2.0 * 3.14159265358979323846 * turns);
#endif
}

__device__ inline float normal_number(const PhiloxBlock& block) {
  const double radius_draw = (double(block.word[0]) + 1.0) * (1.0 / 4294967296.0);
  const double angle_draw = double(block.word[1]) * (1.0 / 4294967296.0);
  return float(sqrt(-2.0 * log(radius_draw)) * cosine_of_turns(angle_draw));
}

MLG_KERNEL(gradient_noise, mode)
__global__ void gradient_noise(global<const float> gradient, global<const int> key, global<const int> step,
                               global<const float> sigma, global<const double> squares, global<float> noise,
                               long long count, long long first, long long elements) {
  const long long i = first_element<1>();
  if (i >= count) return;
  const float g = gradient[i];
  const uint32_t word = float_to_bits(g);
  if (mode == 1) {
    noise[i] = is_finite_bits(word) ? to_float(Narrow<bf16>::from(g)) - g : 0.0f;
    return;
  }
  const PhiloxBlock block =
      philox_block(key, ((unsigned long long)(uint32_t(step[0])) << 32) + (unsigned long long)(first + i));
  if (mode == 2) {
    noise[i] = is_finite_bits(word) ? stochastic_bf16(g, block.word[0]) - g : 0.0f;
    return;
  }
  float scale = sigma[0];
  if (mode == 3) scale = scale * g;
  if (mode == 4) scale = scale * float(sqrt(double(squares[0]) / double(elements)));
  noise[i] = scale * normal_number(block);
}
