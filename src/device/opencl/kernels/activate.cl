/* Activations and their slopes; the numbers are those of psld_activation. */

#define SILU 1
#define RELU 2
#define ELU 3
#define LEAKY_RELU 4

float4 activate(int kind, float4 x)
{
    switch (kind) {
    case SILU:
        return x / (1 + exp(-x));
    case RELU:
        return select((float4)0, x, x > 0);
    case ELU:
        return select(expm1(x), x, x > 0);
    case LEAKY_RELU:
        return select(0.2f * x, x, x > 0);
    }
    return x;
}

float4 activate_slope(int kind, float4 x)
{
    float4 s;
    switch (kind) {
    case SILU:
        s = 1 / (1 + exp(-x));
        return s * (1 + x * (1 - s));
    case RELU:
        return select((float4)0, (float4)1, x > 0);
    case ELU:
        return select(exp(x), (float4)1, x > 0);
    case LEAKY_RELU:
        return select((float4)0.2f, (float4)1, x > 0);
    }
    return 1;
}
