/* Activations and their slopes; the numbers are those of psld_activation. */

#define SILU       1
#define RELU       2
#define ELU        3
#define LEAKY_RELU 4

FUNCTION float activate_one(int kind, float x)
{
    switch (kind) {
    case SILU:
        return x / (1 + exp(-x));
    case RELU:
        return x > 0 ? x : 0;
    case ELU:
        return x > 0 ? x : expm1(x);
    case LEAKY_RELU:
        return x > 0 ? x : 0.2f * x;
    }
    return x;
}

FUNCTION float slope_of_one(int kind, float x)
{
    float s;
    switch (kind) {
    case SILU:
        s = 1 / (1 + exp(-x));
        return s * (1 + x * (1 - s));
    case RELU:
        return x > 0 ? 1 : 0;
    case ELU:
        return x > 0 ? 1 : exp(x);
    case LEAKY_RELU:
        return x > 0 ? 1 : 0.2f;
    }
    return 1;
}

FUNCTION float4 activate(int kind, float4 x)
{
    return MAKE4(activate_one(kind, x.x), activate_one(kind, x.y), activate_one(kind, x.z), activate_one(kind, x.w));
}

FUNCTION float4 activate_slope(int kind, float4 x)
{
    return MAKE4(slope_of_one(kind, x.x), slope_of_one(kind, x.y), slope_of_one(kind, x.z), slope_of_one(kind, x.w));
}
