/* SPDX-License-Identifier: Apache-2.0 */
/* All that it does with CUDA is done by its library, most of it before and after main. */
void early_nothing(void);

int main(void)
{
	early_nothing();
	return 0;
}
