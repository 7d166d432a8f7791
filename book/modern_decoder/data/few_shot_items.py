"""The questions and answers of the few-shot tasks; several accepted answers are divided by a bar."""

OPPOSITES = """
hot cold|big small;little|fast slow|old young;new|happy sad;unhappy|light dark;heavy|high low
open closed;close;shut|full empty|rich poor|strong weak|hard soft;easy|early late|wet dry|clean dirty
loud quiet;silent|thick thin|long short|wide narrow|deep shallow|near far|alive dead|true false
first last|win lose|buy sell|push pull|begin end;finish|love hate|day night|black white|up down
"""
CAPITALS = """
France Paris|Germany Berlin|Italy Rome|Spain Madrid|Portugal Lisbon|Austria Vienna|Greece Athens
Poland Warsaw|Norway Oslo|Sweden Stockholm|Finland Helsinki|Denmark Copenhagen|Ireland Dublin
Hungary Budapest|Russia Moscow|Egypt Cairo|Kenya Nairobi|Japan Tokyo|China Beijing|India Delhi;New Delhi
Thailand Bangkok|Turkey Ankara|Iran Tehran|Iraq Baghdad|Cuba Havana|Peru Lima|Chile Santiago
Canada Ottawa|Australia Canberra|Belgium Brussels|Argentina Buenos Aires|Vietnam Hanoi
"""
FRENCH = """
water eau|bread pain|cat chat|dog chien|house maison|book livre|red rouge|white blanc|black noir
green vert|king roi|queen reine|tree arbre|sun soleil|moon lune|night nuit|day jour|hand main|head tête
heart cœur;coeur|milk lait|wine vin|cheese fromage|horse cheval|fish poisson|bird oiseau|door porte
street rue|sea mer|snow neige|school école|mother mère
"""
PLURALS = """
cat cats|box boxes|city cities|child children|mouse mice|foot feet|tooth teeth|man men|woman women
leaf leaves|knife knives|wolf wolves|bus buses|church churches|baby babies|toy toys|potato potatoes
goose geese|ox oxen|wish wishes|lady ladies|half halves|dish dishes|key keys|hero heroes|photo photos
wife wives|fox foxes|glass glasses|story stories|day days|shelf shelves
"""
PRAISE = """
I loved every minute of it.|What a wonderful surprise!|The food was delicious.|She sings beautifully.
Best holiday we ever had.|The staff were kind and helpful.|A brilliant film, go and see it.
It works perfectly.|My children adore this toy.|I would happily come again.
The room was bright and spotless.|A charming little book.|He played like a master.|Worth every penny.
The view took our breath away.|I have not laughed so much in years.
"""
BLAME = """
I want my money back.|What a waste of time.|The soup was cold and tasteless.
He sang out of tune all evening.|Worst holiday we ever had.|The staff were rude and slow.
A dull film, stay at home.|It broke after two days.|My children were bored at once.
I will never come here again.|The room was dark and filthy.|A tiresome little book.
She played without any feeling.|Far too expensive for what it is.|The noise kept us awake all night.
I have never been so disappointed.
"""
WORDS = """
cat dog sun map top red pen bus hat cup bird fish moon star tree lamp road book wind door table river stone
apple green house bread night smile train cloud plant
"""
