/* Runs a plan of the digits network on one image through the C interface; the result stays on the
 * device until it is read. usage: load_c PLAN */
#include <hone/c.h>
#include <stdio.h>

int main(int argc, char** argv) {
  hone_executable* executable = NULL;
  hone_session* session = NULL;
  hone_tensor* result = NULL;
  float image[64], logits[10];
  const int64_t image_dims[] = {1, 1, 8, 8}, logits_dims[] = {1, 10};
  hone_status status;
  if (argc != 2) return 2;
  for (int i = 0; i < 64; ++i) image[i] = (float)(i % 17) / 16;
  status = hone_load(argv[1], &executable);
  if (status == HONE_OK) status = hone_session_create(executable, NULL, &session);
  if (status == HONE_OK) status = hone_bind_input(session, 0, HONE_F32, image_dims, 4, image, sizeof image);
  if (status == HONE_OK) status = hone_tensor_create(executable, HONE_F32, logits_dims, 2, 0, &result);
  if (status == HONE_OK) status = hone_bind_output_tensor(session, 0, result);
  if (status == HONE_OK) status = hone_run(session);
  if (status == HONE_OK) status = hone_tensor_read(result, logits, sizeof logits);
  hone_tensor_free(result);
  hone_session_free(session);
  hone_executable_free(executable);
  if (status != HONE_OK) {
    fprintf(stderr, "%s\n", hone_last_error());
    return 1;
  }
  for (int i = 0; i < 10; ++i) printf("%.9g\n", (double)logits[i]);
  return 0;
}
